#include "plimsoll/plan/idle_host.h"

#include <ATen/Functions.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace plimsoll::plan {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList() || value.isOptionalTensorList() || value.isList()) {
    for (const c10::IValue& entry : value.toListRef()) for_each_tensor(entry, visit);
  }
}

bool is_large_work_of_the_host(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& schema = op.schema();
  for (const auto& result : schema.returns()) {
    // A view costs nothing, and must be one. A question has an answer.
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return false;
    if (!result.type()->isSubtypeOf(*c10::TensorType::get()) &&
        !result.type()->isSubtypeOf(*c10::ListType::ofTensors())) {
      return false;
    }
  }
  const auto& name = schema.name();
  if (name == "aten::set_" || name == "aten::resize_") return false;
  bool large = false, elsewhere = false;
  for (std::size_t i = stack.size() - schema.arguments().size(); i < stack.size(); ++i) {
    if (stack[i].isDevice() && !stack[i].toDevice().is_cpu()) return false;
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.is_cpu()) elsewhere = true;
      if (tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.nbytes() >= kLarge) large = true;
    });
  }
  return large && !elsewhere;
}

at::Tensor on_meta(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta).pinned_memory(false));
}

at::Tensor with_memory(const at::Tensor& meta) {
  if (!meta.defined()) return meta;
  return at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(at::kCPU));
}

/// Each tensor in it replaced.
template <class Change>
c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(change(tensor));
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      tensors.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    }
    return tensors;
  }
  return value;
}

/// The argument that a result is, for operators that write into one of theirs.
const c10::IValue& written_argument(const c10::FunctionSchema& schema, const c10::Argument& result,
                                    const torch::jit::Stack& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->beforeSets() == result.alias_info()->beforeSets()) return arguments[i];
  }
  TORCH_INTERNAL_ASSERT(false, schema.name(), " returns what none of its arguments is");
}

}  // namespace

void IdleHost::call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (!is_large_work_of_the_host(op, stack)) {
    op.callBoxed(&stack);
    return;
  }
  const auto& schema = op.schema();
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const torch::jit::Stack arguments(std::make_move_iterator(first), std::make_move_iterator(stack.end()));
  stack.erase(first, stack.end());
  if (schema.name() == "aten::_pin_memory") {
    const auto& tensor = arguments[0].toTensor();
    stack.emplace_back(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().pinned_memory(true)));
    return;
  }
  const bool makes_tensors = std::any_of(schema.returns().begin(), schema.returns().end(),
                                         [](const auto& result) { return result.alias_info() == nullptr; });
  torch::jit::Stack results(schema.returns().size());
  if (makes_tensors) {
    try {
      results.clear();
      for (const auto& argument : arguments) results.push_back(changed(argument, on_meta));
      op.callBoxed(&results);
    } catch (const c10::NotImplementedError&) {  // Sizes cannot be had without values.
      stack.insert(stack.end(), arguments.begin(), arguments.end());
      op.callBoxed(&stack);
      return;
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& result = schema.returns()[i];
    if (result.alias_info() != nullptr) {
      stack.push_back(written_argument(schema, result, arguments));
    } else {
      stack.push_back(changed(results[i], with_memory));
    }
  }
}

}  // namespace plimsoll::plan
