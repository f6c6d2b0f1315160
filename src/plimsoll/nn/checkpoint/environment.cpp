#include "plimsoll/nn/checkpoint/environment.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>

#include <algorithm>
#include <mutex>

namespace plimsoll::nn::detail {
namespace {

at::Tensor get_state(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

// The arguments' devices that have their own random number generator, each once.
std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& arguments) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& argument : arguments) {
    if (!argument.defined() || argument.is_cpu() || argument.is_meta()) continue;
    if (std::ranges::find(devices, argument.device()) == devices.end()) devices.push_back(argument.device());
  }
  return devices;
}

// The device type of the second autocast state, beside the CPU's: CUDA if an argument is there, otherwise that of the
// first device, otherwise that of the current accelerator. Mirrors _infer_device_type (torch/utils/checkpoint.py, torch
// 2.13).
c10::DeviceType device_type_of(const std::vector<at::Tensor>& arguments) {
  std::optional<c10::DeviceType> first;
  for (const at::Tensor& argument : arguments) {
    if (!argument.defined() || argument.is_cpu()) continue;
    if (argument.is_cuda()) return c10::kCUDA;
    if (!first) first = argument.device().type();
  }
  return first.value_or(at::getAccelerator(/*checked=*/false).value_or(c10::kCPU));
}

std::optional<AutocastState> autocast_of(c10::DeviceType type) {
  if (!at::autocast::is_autocast_available(type)) return std::nullopt;
  return AutocastState(type);
}

}  // namespace

RngStates::RngStates(std::vector<c10::Device> devices)
    : devices_(std::move(devices)), cpu_(get_state(at::detail::getDefaultCPUGenerator())) {
  for (const c10::Device& device : devices_) states_.push_back(get_state(at::globalContext().defaultGenerator(device)));
}

void RngStates::restore() const {
  set_state(at::detail::getDefaultCPUGenerator(), cpu_);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    set_state(at::globalContext().defaultGenerator(devices_[i]), states_[i]);
  }
}

AutocastState::AutocastState(c10::DeviceType type)
    : type(type),
      enabled(at::autocast::is_autocast_enabled(type)),
      dtype(at::autocast::get_autocast_dtype(type)),
      cache_enabled(at::autocast::is_autocast_cache_enabled()) {}

AutocastScope::AutocastScope(const AutocastState& state) : outer_(state.type) {
  at::autocast::set_autocast_enabled(state.type, state.enabled);
  at::autocast::set_autocast_dtype(state.type, state.dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(state.cache_enabled);
}

AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(outer_.type, outer_.enabled);
  at::autocast::set_autocast_dtype(outer_.type, outer_.dtype);
  at::autocast::set_autocast_cache_enabled(outer_.cache_enabled);
}

CheckpointEnvironment::CheckpointEnvironment(bool preserve_rng_state, const std::vector<at::Tensor>& arguments)
    : device_autocast(autocast_of(device_type_of(arguments))),
      cpu_autocast(c10::kCPU),
      device_scope(DeviceScope::current()) {
  if (preserve_rng_state) rng.emplace(devices_of(arguments));
}

RestoredEnvironment::RestoredEnvironment(const CheckpointEnvironment& environment) {
  if (environment.rng) {
    outer_rng_.emplace(environment.rng->devices());
    environment.rng->restore();
  }
  if (environment.device_autocast) device_autocast_.emplace(*environment.device_autocast);
  cpu_autocast_.emplace(environment.cpu_autocast);
}

RestoredEnvironment::~RestoredEnvironment() {
  if (outer_rng_) outer_rng_->restore();
}

}  // namespace plimsoll::nn::detail
