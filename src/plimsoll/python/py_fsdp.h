#pragma once

#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <optional>

#include "plimsoll/tracker/fsdp_runtime.h"

/// torch's own FSDP2, in Python, as a tracker follows it. What it does is told by
/// python/plimsoll/trackers/fsdp_hooks.py, on the thread that does it; what it consists of is asked there too.
namespace plimsoll::python {

class PyFSDP final : public FSDPRuntime {
 public:
  /// `look` is the module fsdp_hooks, or what has its functions.
  explicit PyFSDP(py::object look);
  ~PyFSDP() override;

  void listen(Listener& listener) override;
  void stop() override;
  std::optional<State> state_of(torch::nn::Module& module) override;
  at::Device device_of(torch::nn::Module& root) override;
  void for_each_held(Key group, const std::function<void(fsdp::MemoryUse, const at::Tensor&)>& visit) const override;
  void for_each_unsharded(Key group, const std::function<void(const at::Tensor&)>& visit) const override;
  Key group_of(const at::Tensor& parameter) const override;
  std::optional<Use> current_use(c10::Device device) const noexcept override;

 private:
  py::object look_;
  Listener* own_ = nullptr;
};

// --- For the hooks. Each tells all that listen.

void tell_state(fsdp::Stage stage, py::handle state);
void tell_group(fsdp::Stage stage, py::handle group);
void tell_memory(fsdp::MemoryUse use, const at::Tensor& tensor, py::handle group);
/// The parameter, whole or not, is the group's. Gradients of a whole one are the group's unsharded gradients.
void adopt_parameter(const at::Tensor& parameter, py::handle group, bool whole);
/// What this thread takes memory for on that device, until use_over(). Nests.
void use_begins(fsdp::MemoryUse use, py::handle group, const at::Device& device);
void use_over();

}  // namespace plimsoll::python
