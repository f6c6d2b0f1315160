#include "plimsoll/fsdp/module_tree.h"

#include <unordered_map>
#include <unordered_set>

#include "plimsoll/fsdp/fsdp_state.h"

namespace plimsoll::fsdp {
namespace {

using Identities = std::unordered_set<const void*>;

void add_named_modules(torch::nn::Module& module, const std::string& name, Identities& seen,
                       std::vector<NamedModule>& found) {
  if (!seen.insert(&module).second) return;
  found.push_back({name, &module});
  for (const auto& child : module.named_children()) {
    add_named_modules(*child.value(), name.empty() ? child.key() : name + "." + child.key(), seen, found);
  }
}

void add_managed_modules(torch::nn::Module& module, const Identities& roots, Identities& visited,
                         std::vector<torch::nn::Module*>& found) {
  if (!roots.contains(&module) && FSDPState::of(module) != nullptr) return;  // Sharded by an earlier call.
  visited.insert(&module);
  for (const auto& child : module.children()) {
    if (!visited.contains(child.get())) add_managed_modules(*child, roots, visited, found);
  }
  found.push_back(&module);
}

class Ignored {
 public:
  explicit Ignored(const std::vector<at::Tensor>& params) {
    for (const at::Tensor& param : params) params_.insert(param.unsafeGetTensorImpl());
  }
  bool has(const at::Tensor& param) const { return params_.contains(param.unsafeGetTensorImpl()); }

  // True if the module and its submodules have nothing left to manage.
  bool covers(torch::nn::Module& module) {
    if (const auto known = modules_.find(&module); known != modules_.end()) return known->second;
    bool covered = module.buffers(/*recurse=*/false).empty();
    for (const at::Tensor& param : module.parameters(/*recurse=*/false)) covered = covered && has(param);
    for (const auto& child : module.children()) covered = covered && covers(*child);
    modules_.emplace(&module, covered);
    return covered;
  }

 private:
  Identities params_;
  std::unordered_map<const torch::nn::Module*, bool> modules_;
};

}  // namespace

std::vector<NamedModule> named_modules(torch::nn::Module& root) {
  std::vector<NamedModule> found;
  Identities seen;
  add_named_modules(root, "", seen, found);
  return found;
}

std::vector<torch::nn::Module*> root_modules(const std::vector<torch::nn::Module*>& modules) {
  std::vector<torch::nn::Module*> roots;
  Identities below;
  for (torch::nn::Module* module : modules) {
    for (const auto& [name, found] : named_modules(*module)) {
      if (found != module) below.insert(found);
    }
  }
  for (torch::nn::Module* module : modules) {
    if (!below.contains(module)) roots.push_back(module);
  }
  return roots;
}

std::vector<torch::nn::Module*> managed_modules(const std::vector<torch::nn::Module*>& roots,
                                                const std::vector<at::Tensor>& ignored_params) {
  const Identities root_set(roots.begin(), roots.end());
  Identities visited;
  std::vector<torch::nn::Module*> found;
  for (torch::nn::Module* root : roots) {
    if (!visited.contains(root)) add_managed_modules(*root, root_set, visited, found);
  }
  if (ignored_params.empty()) return found;
  Ignored ignored(ignored_params);
  std::erase_if(found, [&](torch::nn::Module* module) { return ignored.covers(*module); });
  return found;
}

ManagedTensors managed_tensors(const std::vector<torch::nn::Module*>& modules,
                               const std::vector<at::Tensor>& ignored_params) {
  ManagedTensors tensors;
  const Ignored ignored(ignored_params);
  Identities seen;
  for (torch::nn::Module* module : modules) {
    for (const auto& param : module->named_parameters(/*recurse=*/false)) {
      if (ignored.has(param.value()) || !seen.insert(param.value().unsafeGetTensorImpl()).second) continue;
      TORCH_CHECK_VALUE(param.value().dim() > 0, "The parameter ", param.key(), " of ", nn::class_name(*module),
                        " has no dimension to shard along. Give it the shape [1], or pass it in ignored_params.");
      TORCH_CHECK_VALUE(managed(param.value()) == nullptr, "The parameter ", param.key(), " of ",
                        nn::class_name(*module),
                        " is already managed by FSDP in another group: modules share it. Put the modules that "
                        "share it into one group: fully_shard({a, b}).");
      tensors.params.push_back({param.value(), param.key()});
    }
    for (const at::Tensor& buffer : module->buffers(/*recurse=*/false)) {
      if (seen.insert(buffer.unsafeGetTensorImpl()).second) tensors.buffers.push_back(buffer);
    }
  }
  return tensors;
}

}  // namespace plimsoll::fsdp
