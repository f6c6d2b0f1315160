#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <vector>

#include "plimsoll/nn/device_scope.h"

namespace plimsoll::nn::detail {

/// The states of random number generators: the CPU's and those of some devices.
class RngStates {
 public:
  /// Reads the current states.
  explicit RngStates(std::vector<c10::Device> devices);
  void restore() const;
  const std::vector<c10::Device>& devices() const { return devices_; }

 private:
  std::vector<c10::Device> devices_;
  at::Tensor cpu_;
  std::vector<at::Tensor> states_;
};

/// The current autocast state of one device type.
struct AutocastState {
  explicit AutocastState(c10::DeviceType type);

  c10::DeviceType type;
  bool enabled;
  c10::ScalarType dtype;
  bool cache_enabled;
};

/// Restores an autocast state for a scope. Drops the casted weights when the outermost scope ends, like
/// torch.amp.autocast (torch 2.13), which this mirrors.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState outer_;
};

/// The thread state that the first run of a checkpointed function sees.
struct CheckpointEnvironment {
  CheckpointEnvironment(bool preserve_rng_state, const std::vector<at::Tensor>& arguments);

  std::optional<RngStates> rng;
  std::optional<AutocastState> device_autocast;
  AutocastState cpu_autocast;
  std::optional<c10::Device> device_scope;
};

/// Restores random number generators and autocast of an environment for a scope.
class RestoredEnvironment {
 public:
  explicit RestoredEnvironment(const CheckpointEnvironment& environment);
  ~RestoredEnvironment();
  RestoredEnvironment(const RestoredEnvironment&) = delete;
  RestoredEnvironment& operator=(const RestoredEnvironment&) = delete;

 private:
  std::optional<RngStates> outer_rng_;
  std::optional<AutocastScope> device_autocast_;
  std::optional<AutocastScope> cpu_autocast_;
};

}  // namespace plimsoll::nn::detail
