#include "plimsoll/nn/module_contents.h"

namespace plimsoll::nn {
namespace {

const ForeignModule* as_foreign(const torch::nn::Module& module) { return dynamic_cast<const ForeignModule*>(&module); }

std::vector<at::Tensor> defined_of(std::vector<at::Tensor> tensors) {
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  return tensors;
}

}  // namespace

NamedModules children_of(const torch::nn::Module& module) {
  if (const auto* foreign = as_foreign(module)) return foreign->own_children();
  NamedModules children;
  for (const auto& child : module.named_children()) children.emplace_back(child.key(), child.value());
  return children;
}

std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  if (const auto* foreign = as_foreign(module)) return foreign->own_parameters();
  return defined_of(module.parameters(/*recurse=*/false));
}

std::vector<at::Tensor> buffers_of(const torch::nn::Module& module) {
  if (const auto* foreign = as_foreign(module)) return foreign->own_buffers();
  return defined_of(module.buffers(/*recurse=*/false));
}

}  // namespace plimsoll::nn
