#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::python {

/// A tracker of Python modules and optimizers. All functions need the interpreter's lock.
class PyTracker {
 public:
  /// `look` is the Python module that reads FSDP2's states (see PyFSDP); None for a MemTracker without FSDP2.
  explicit PyTracker(py::object look);

  void enter();
  void leave();
  void set_preparing(bool preparing) { tracker_->set_preparing(preparing); }
  void name_apart() { tracker_->name_apart(); }
  bool entered() const { return !scopes_.empty(); }

  void add_root(py::handle module);
  void track_module(py::handle module);
  void track_optimizer(py::object optimizer);
  void track_tensor(const at::Tensor& tensor);
  void track_inputs(py::handle inputs);

  py::dict snapshot(bool peak);
  py::list module_stats();
  /// The root modules that ran: (name, module).
  py::list roots();
  py::list fsdp_module_stats();
  void reset_mod_stats();
  py::list alive_at_peak(const std::string& device);
  py::list step_peaks();
  py::dict phase_peaks();
  /// Of the device; with FSDP modules, of the device that the root computes on.
  py::object explain(const std::string& device);
  py::object explain_first_state();
  /// Name, class, whether fully_shard was applied, number of parameters.
  using Entry = std::tuple<std::string, std::string, bool, std::uint64_t>;
  /// The JSON of plimsoll::attribution. Parents come before children.
  std::string attribution(const std::string& device, const std::vector<Entry>& modules,
                          std::vector<std::string> wrappers, int depth);
  py::dict device_books(const std::string& device);
  void categorise(const at::Tensor& tensor, const std::string& category);
  std::set<std::string> parents() const { return tracker_->parents(); }
  std::size_t footprint();

 private:
  FSDPMemTracker& fsdp();

  std::unique_ptr<MemTracker> tracker_;
  bool is_fsdp_ = false;
  std::vector<MemTracker::Scope> scopes_;
};

void bind_trackers(py::module_& module);

}  // namespace plimsoll::python
