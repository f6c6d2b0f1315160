#pragma once

#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <optional>

#include "plimsoll/tracker/fsdp/fsdp_runtime.h"

/// torch's own FSDP2, in Python, as a tracker follows it. python/plimsoll/trackers/fsdp2/parts.py knows its states and
/// groups; the patches beside it report its events, on the thread that does the work.
namespace plimsoll::python {

class PyFSDP final : public FSDPRuntime {
 public:
  /// `look` is the module `parts`, or an object with its functions.
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

/// The functions that the patches of FSDP2 call; each sends an event to all listeners.
void bind_fsdp(py::module_& module);

}  // namespace plimsoll::python
