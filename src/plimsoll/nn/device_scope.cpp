#include "plimsoll/nn/device_scope.h"

#include <algorithm>

namespace plimsoll::nn {
namespace {

thread_local std::optional<c10::Device> current_device;

bool holds_tensors(const c10::IValue& value) {
  if (value.isTensor() || value.isTensorList()) return true;
  return value.isList() && std::ranges::any_of(value.toListRef(), holds_tensors);
}

}  // namespace

DeviceScope::DeviceScope(c10::Device device)
    : device_(device), outer_(current_device), mode_(ModeLevel::kAboveAutograd, *this) {
  current_device = device;
}

DeviceScope::~DeviceScope() { current_device = outer_; }

std::optional<c10::Device> DeviceScope::current() { return current_device; }

void DeviceScope::call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const std::size_t begin = stack.size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != "device") continue;
    const bool names_none = stack[begin + i].isNone();
    if (names_none && std::none_of(stack.begin() + begin, stack.end(), holds_tensors)) stack[begin + i] = device_;
    break;
  }
  op.callBoxed(&stack);
}

}  // namespace plimsoll::nn
