#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/nn/device_scope.h"

namespace plimsoll::nn::detail {

/// The states of random number generators: the CPU's and those of some devices.
class RngStates {
 public:
  /// Reads the states as they are now.
  explicit RngStates(std::vector<c10::Device> devices);
  void restore() const;
  const std::vector<c10::Device>& devices() const { return devices_; }

 private:
  std::vector<c10::Device> devices_;
  at::Tensor cpu_;
  std::vector<at::Tensor> states_;
};

/// Autocast for one type of device, as it is now.
struct AutocastState {
  explicit AutocastState(c10::DeviceType type);

  c10::DeviceType type;
  bool enabled;
  c10::ScalarType dtype;
  bool cache_enabled;
};

/// While it lives, autocast is as it was; mirrors torch.amp.autocast (torch 2.13), which drops the casted weights when
/// the outermost scope ends.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState outer_;
};

/// What the first run of a checkpointed function sees of the thread it runs on.
struct CheckpointEnvironment {
  CheckpointEnvironment(bool preserve_rng_state, const std::vector<at::Tensor>& arguments);

  std::optional<RngStates> rng;
  std::optional<AutocastState> device_autocast;
  AutocastState cpu_autocast;
  std::optional<c10::Device> device_scope;
};

/// While it lives, random numbers start from the environment's, and autocast is the environment's.
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
