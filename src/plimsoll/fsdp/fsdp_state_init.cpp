#include <algorithm>
#include <unordered_map>
#include <utility>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/module_tree.h"

// One-time initialisation, in the first forward: then the root is known.
namespace plimsoll::fsdp {

std::vector<std::shared_ptr<FSDPState>> FSDPState::all_states() const {
  std::vector<std::shared_ptr<FSDPState>> states;
  for (const auto& state : state_ctx->all_states) {
    if (auto alive = state.lock()) states.push_back(std::move(alive));
  }
  return states;
}

// The first state that runs forward is the root. Mirrors FSDPState._lazy_init (torch 2.13).
void FSDPState::lazy_init() {
  if (is_root_) return;
  TORCH_CHECK(modules_.size() == 1, "The first forward must be that of one root module, found the group ", name(),
              ". Apply fully_shard to the model around the group too, and call the model.");
  torch::nn::Module& root = *modules_[0];
  std::vector<std::shared_ptr<FSDPState>> states;
  for (const auto& [path, module] : named_modules(root)) {
    auto state = of(*module);
    if (!state || std::find(states.begin(), states.end(), state) != states.end()) continue;
    TORCH_CHECK(
        state.get() == this || !state->is_root_, "The FSDP module '", path, "' below ", name(),
        state->is_root_ == true ? " has run forward before, as a separate root. " : " belongs to another root. ",
        "Run the first forward through the root module.");
    states.push_back(std::move(state));
  }
  state_ctx->all_states.assign(states.begin(), states.end());
  // Backward needs the root's parameters first, so do not free them after forward.
  if (auto_reshard_after_forward) {
    for (const auto& group : fsdp_param_groups) group->post_forward_mesh_info.reset();
  }
  init_fqns();
  init_shared_state();
  for (const auto& state : states) {
    for (const auto& group : state->fsdp_param_groups) group->lazy_init();
  }
  // After all checks, so that the user can fix the error and call forward again.
  for (const auto& state : states) state->is_root_ = false;
  is_root_ = true;
}

void FSDPState::init_fqns() {
  std::unordered_map<const c10::TensorImpl*, FSDPParam*> params;
  std::unordered_map<const torch::nn::Module*, std::vector<FSDPParamGroup*>> groups;
  for (const auto& state : all_states()) {
    for (const auto& group : state->fsdp_param_groups) {
      for (const auto& param : group->fsdp_params()) params[param->param().unsafeGetTensorImpl()] = param.get();
      for (const auto* module : group->modules()) groups[module].push_back(group.get());
      group->clear_module_fqn();
    }
  }
  for (const auto& [path, module] : named_modules(*modules_[0])) {
    for (const auto& param : module->named_parameters(/*recurse=*/false)) {
      const auto found = params.find(param.value().unsafeGetTensorImpl());
      if (found == params.end()) continue;
      found->second->set_fqn(path.empty() ? param.key() : path + "." + param.key());
      params.erase(found);  // The parameter has its first name.
    }
    for (FSDPParamGroup* group : groups[module]) group->add_module_fqn(path);
  }
}

void FSDPState::init_shared_state() {
  comm_ctx->lazy_init(device_);
  int most = comm_ctx->reduce_scatter_max_input_buffers;
  for (const auto& state : all_states()) {
    state->state_ctx = state_ctx;
    state->comm_ctx = comm_ctx;
    const int count = static_cast<int>(state->fsdp_param_groups.size());
    for (int i = 0; i < count; ++i) {
      FSDPParamGroup& group = *state->fsdp_param_groups[static_cast<std::size_t>(i)];
      group.comm_ctx = comm_ctx;
      group.param_group_index = i;
      group.num_param_groups = count;
      most = std::max(most, group.reduce_scatter_max_input_buffers);
    }
  }
  comm_ctx->reduce_scatter_max_input_buffers = most;
}

}  // namespace plimsoll::fsdp
