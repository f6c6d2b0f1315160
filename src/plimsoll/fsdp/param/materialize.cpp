#include "plimsoll/fsdp/param/materialize.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <unordered_set>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/module_tree.h"

namespace plimsoll::fsdp {
namespace {

template <class Fn>
void for_each_state(torch::nn::Module& root, Fn fn) {
  std::unordered_set<FSDPState*> seen;
  for (const auto& [name, module] : named_modules(root)) {
    const auto state = FSDPState::of(*module);
    if (state && seen.insert(state.get()).second) fn(*state);
  }
}

using Seen = std::unordered_set<const void*>;

// A parameter of several modules gets new memory at each module, as in torch. The last allocation stays; the others
// remain in the allocator's cache and count as reserved.
void give_memory(const at::Tensor& tensor, at::Device device) {
  // set_data refuses to change from meta.
  const at::Tensor data = at::empty_like(tensor.variable_data(), tensor.options().device(device));
  tensor.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

void reset(FSDPState& state) {
  for (const auto& group : state.fsdp_param_groups) {
    for (const auto& param : group->fsdp_params()) param->reset_sharded_param();
  }
}

// In the order of torch.nn.Module._apply and FSDPModule._apply: shards are padded when their module has memory.
void give_memory(torch::nn::Module& module, at::Device device, Seen& seen) {
  if (!seen.insert(&module).second) return;
  const auto state = FSDPState::of(module);
  if (state) {
    for (const auto& group : state->fsdp_param_groups) group->reshard();
  }
  for (const auto& child : module.children()) give_memory(*child, device, seen);
  for (const at::Tensor& param : module.parameters(/*recurse=*/false)) give_memory(param, device);
  for (const at::Tensor& buffer : module.buffers(/*recurse=*/false)) {
    if (seen.insert(buffer.unsafeGetTensorImpl()).second) give_memory(buffer, device);
  }
  if (state) reset(*state);
}

}  // namespace

void to_empty(ModuleRef module, at::Device device) {
  const at::NoGradGuard no_grad;
  Seen seen;
  give_memory(*module, device, seen);
}

void reset_sharded_params(ModuleRef module) { for_each_state(*module, reset); }

}  // namespace plimsoll::fsdp
