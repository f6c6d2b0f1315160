#include "plimsoll/fsdp/materialize.h"

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

// set_data refuses the way from meta.
void replace_data(const at::Tensor& tensor, const at::Tensor& data) {
  tensor.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

}  // namespace

void to_empty(ModuleRef module, at::Device device) {
  const at::NoGradGuard no_grad;
  for_each_state(*module, [](FSDPState& state) {
    for (const auto& group : state.fsdp_param_groups) group->reshard();
  });
  std::unordered_set<const c10::TensorImpl*> seen;
  const auto empty = [&](const at::Tensor& tensor) {
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second) return;
    replace_data(tensor, at::empty_like(tensor.variable_data(), tensor.options().device(device)));
  };
  for (const auto& [name, below] : named_modules(*module)) {
    for (const at::Tensor& param : below->parameters(/*recurse=*/false)) empty(param);
    for (const at::Tensor& buffer : below->buffers(/*recurse=*/false)) empty(buffer);
  }
  reset_sharded_params(module);
}

void reset_sharded_params(ModuleRef module) {
  for_each_state(*module, [](FSDPState& state) {
    for (const auto& group : state.fsdp_param_groups) {
      for (const auto& param : group->fsdp_params()) param->reset_sharded_param();
    }
  });
}

}  // namespace plimsoll::fsdp
