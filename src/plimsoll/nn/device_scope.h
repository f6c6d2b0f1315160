#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "plimsoll/nn/dispatch_mode.h"

namespace plimsoll::nn {

/// Sets this thread's default device for new tensors; the innermost scope counts. Counterpart of Python's `with
/// torch.device(…)`:
///
///     DeviceScope scope(torch::kMeta);
///     torch::nn::Linear layer(16384, 53248);  // No memory, no time.
///
/// Calls with a tensor argument (`empty_like`, `new_zeros`) use that tensor's device, and tensors inside an operator
/// are not affected. Tensors made from C++ data (`torch::tensor({1, 2})`, `from_blob`) are not affected either, because
/// they do not ask torch for a device.
class DeviceScope final : private DispatchMode {
 public:
  explicit DeviceScope(c10::Device device);
  ~DeviceScope() override;
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  /// The device of this thread's innermost scope.
  static std::optional<c10::Device> current();

 private:
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override;

  c10::Device device_;
  std::optional<c10::Device> outer_;
  DispatchModeScope mode_;
};

}  // namespace plimsoll::nn
