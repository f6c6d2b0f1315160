#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "plimsoll/nn/dispatch_mode.h"

namespace plimsoll::nn {

/// While it lives, tensors that this thread makes without naming a device are made on the given one; the innermost
/// scope counts. The counterpart of Python's `with torch.device(…)`:
///
///     DeviceScope scope(torch::kMeta);
///     torch::nn::Linear layer(16384, 53248);  // No memory, no time.
///
/// Calls with a tensor among their arguments (`empty_like`, `new_zeros`) keep to that tensor's device, and what an
/// operator makes inside of itself stays where it puts it. Not reached are tensors made from C++ data
/// (`torch::tensor({1, 2})`, `from_blob`), which never ask torch for a device.
class DeviceScope final : private DispatchMode {
 public:
  explicit DeviceScope(c10::Device device);
  ~DeviceScope() override;
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  /// The device of the innermost scope of this thread.
  static std::optional<c10::Device> current();

 private:
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override;

  c10::Device device_;
  std::optional<c10::Device> outer_;
  DispatchModeScope mode_;
};

}  // namespace plimsoll::nn
