#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plimsoll/python/bind.h"
#include "plimsoll/python/stand_ins.h"
#include "plimsoll/python/tensors.h"
#include "plimsoll/report/document.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/tracker/attribution/attribution.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::python {
namespace {

using namespace py::literals;

// --- Answers as plain Python values. The drop-ins bring them into the forms of torch's trackers.

/// {"cuda:0": {"Parameter": 4096, …, "Total": 8192}}
py::dict value_of(const Snapshot& snapshot) {
  py::dict devices;
  for (const auto& [device, of_device] : snapshot) {
    py::dict categories;
    for (const auto& [category, bytes] : of_device.categories()) categories[py::str(category)] = bytes;
    categories["Total"] = of_device.total();
    devices[py::str(device)] = categories;
  }
  return devices;
}

/// With the snapshots as {"Pre-Forward": [snapshot, …]}
template <class State>
py::dict value_of(const StatsByState<State>& stats) {
  py::dict snapshots;
  for (const auto state : stats.order) {
    py::list calls;
    for (const auto& call : stats.snapshots.at(state)) calls.append(value_of(call));
    snapshots[py::str(std::string(name(state)))] = calls;
  }
  return py::dict("fqn"_a = stats.fqn, "local_peak"_a = stats.local_peak, "snapshots"_a = snapshots);
}

py::dict value_of(const ModuleStats& stats) {
  auto value = value_of<ModuleState>(stats);
  value["module"] = PyModule::object_of(stats.module.lock().get());
  value["parameter_mem"] = stats.parameter_bytes;
  value["buffer_mem"] = stats.buffer_bytes;
  value["input_mem"] = stats.input_bytes;
  value["output_mem"] = stats.output_bytes;
  return value;
}

py::dict value_of(const FSDPModuleStats& stats) {
  auto value = value_of<FSDPModState>(stats);
  py::list modules;
  for (const auto& module : stats.modules) modules.append(PyModule::object_of(module.lock().get()));
  value["modules"] = modules;
  return value;
}

py::dict value_of(const LiveTensor& tensor) {
  py::object dtype = py::none();
  if (tensor.dtype) {
    dtype = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPDtype(*tensor.dtype)));
  }
  return py::dict("bytes"_a = tensor.bytes, "category"_a = tensor.category, "owner"_a = tensor.owner,
                  "sizes"_a = tensor.sizes ? py::object(py::tuple(py::cast(*tensor.sizes))) : py::none(),
                  "dtype"_a = dtype);
}

py::dict value_of(const Explanation& explanation) {
  py::list causes;
  for (const auto& cause : explanation.causes) {
    causes.append(py::dict("bytes"_a = cause.bytes, "category"_a = cause.category, "why"_a = cause.why,
                           "sentence"_a = report::sentence(cause), "owners"_a = cause.owners,
                           "allocations"_a = cause.allocations, "one_per_shard"_a = cause.one_per_shard));
  }
  return py::dict("device"_a = explanation.device, "total"_a = explanation.total, "reserved"_a = explanation.reserved,
                  "step"_a = explanation.step, "phase"_a = explanation.phase, "module"_a = explanation.module,
                  "stage"_a = explanation.stage, "causes"_a = causes, "text"_a = to_text(explanation));
}

py::dict value_of(const DeviceBooks& books) {
  return py::dict("active"_a = books.active.current, "active_peak"_a = books.active.peak,
                  "reserved"_a = books.reserved.current, "reserved_peak"_a = books.reserved.peak,
                  "outside"_a = books.outside);
}

template <class T>
py::list values_of(const std::vector<T>& all) {
  py::list list;
  for (const auto& one : all) list.append(value_of(one));
  return list;
}

/// A tracker of Python modules and optimizers. All functions need the interpreter's lock.
class PyTracker {
 public:
  /// Name, class, whether fully_shard was applied, number of parameters.
  using Entry = std::tuple<std::string, std::string, bool, std::uint64_t>;

  /// `look` is the Python module that reads FSDP2's states (see bind.h); None for a MemTracker without FSDP2.
  explicit PyTracker(py::object look) : is_fsdp_(!look.is_none()) {
    if (is_fsdp_) {
      tracker_ = std::make_unique<FSDPMemTracker>(python_fsdp(std::move(look)));
    } else {
      tracker_ = std::make_unique<MemTracker>();
    }
  }

  MemTracker& plain() { return *tracker_; }
  FSDPMemTracker& fsdp() {
    TORCH_CHECK(is_fsdp_, "this tracker does not follow FSDP modules");
    return static_cast<FSDPMemTracker&>(*tracker_);
  }

  void enter() { scopes_.push_back(tracker_->enter()); }
  void leave() {
    TORCH_CHECK(!scopes_.empty(), "leave() was called on a tracker that is not entered");
    scopes_.pop_back();
  }
  bool entered() const { return !scopes_.empty(); }

  void add_root(py::handle module) { fsdp().add_root(*PyModule::of(module)); }
  void track_module(py::handle module) { tracker_->track_module(*PyModule::of(module)); }
  void track_optimizer(py::object optimizer) {
    PyOptimizer observed(std::move(optimizer));
    tracker_->track_optimizer(observed);
  }
  void track_inputs(py::handle inputs) {
    FoundTensors found;
    found.add(inputs);
    fsdp().track_inputs(found.all());
  }
  void reset_mod_stats() {
    if (is_fsdp_) return fsdp().reset_mod_stats();
    tracker_->reset_mod_stats();
  }

  /// The root modules that ran: (name, module).
  py::list roots() {
    py::list roots;
    for (const auto& [name, root] : tracker_->roots()) {
      const auto module = PyModule::object_of(root.lock().get());
      if (!module.is_none()) roots.append(py::make_tuple(name, module));
    }
    return roots;
  }

  py::list step_peaks() {
    py::list steps;
    for (const auto& step : tracker_->step_peaks()) steps.append(py::make_tuple(step.step, value_of(step.peak)));
    return steps;
  }

  py::dict phase_peaks() {
    py::dict phases;
    for (const auto& [phase, snapshot] : tracker_->phase_peaks()) phases[py::str(phase)] = value_of(snapshot);
    return phases;
  }

  /// Of the device; with FSDP modules, of the device that the root computes on.
  py::dict explain(const std::string& device) {
    return value_of(is_fsdp_ ? fsdp().explain() : tracker_->explain(device));
  }
  py::object explain_first_state() {
    const auto explanation = fsdp().explain_first_state();
    return explanation ? py::object(value_of(*explanation)) : py::none();
  }

  /// The JSON of plimsoll::attribution. Parents come before children.
  std::string attribution(const std::string& device, const std::vector<Entry>& modules,
                          std::vector<std::string> wrappers, int depth) {
    ModuleTree tree{.modules = {}, .wrappers = std::move(wrappers)};
    for (const auto& [name, type, fsdp_unit, parameters] : modules) {
      tree.modules.push_back({name, type, fsdp_unit, parameters});
    }
    return report::to_json(plimsoll::attribution(*tracker_, device, tree, depth));
  }

  std::size_t footprint() {
    const auto footprint = tracker_->footprint();
    return footprint.ledger_bytes + footprint.entries * sizeof(std::uint64_t);
  }

 private:
  std::unique_ptr<MemTracker> tracker_;
  bool is_fsdp_ = false;
  std::vector<MemTracker::Scope> scopes_;
};

/// A function of the plain tracker, for Python.
template <class Result, class Tracker, class... Arguments>
auto of_plain(Result (Tracker::*function)(Arguments...)) {
  return
      [function](PyTracker& self, Arguments... arguments) -> Result { return (self.plain().*function)(arguments...); };
}

}  // namespace

void bind_trackers(py::module_& module) {
  using Self = PyTracker;
  py::class_<Self>(module, "Tracker")
      .def(py::init<py::object>(), "fsdp"_a = py::none())
      .def("enter", &Self::enter)
      .def("leave", &Self::leave)
      .def_property_readonly("entered", &Self::entered)
      .def("set_preparing", of_plain(&MemTracker::set_preparing), "preparing"_a)
      .def("name_apart", of_plain(&MemTracker::name_apart))
      .def("add_root", &Self::add_root, "module"_a)
      .def("track_module", &Self::track_module, "module"_a)
      .def("track_optimizer", &Self::track_optimizer, "optimizer"_a)
      .def("track_tensor", of_plain(&MemTracker::track_tensor), "tensor"_a)
      .def("track_inputs", &Self::track_inputs, "inputs"_a)
      .def(
          "snapshot",
          [](Self& self, bool peak) {
            return value_of(self.plain().snapshot(peak ? SnapshotKind::kPeak : SnapshotKind::kCurrent));
          },
          "peak"_a = false)
      .def("module_stats", [](Self& self) { return values_of(self.plain().module_stats()); })
      .def("roots", &Self::roots)
      .def("fsdp_module_stats", [](Self& self) { return values_of(self.fsdp().fsdp_module_stats()); })
      .def("reset_mod_stats", &Self::reset_mod_stats)
      .def(
          "alive_at_peak",
          [](Self& self, const std::string& device) { return values_of(self.plain().alive_at_peak(device)); },
          "device"_a)
      .def("step_peaks", &Self::step_peaks)
      .def("phase_peaks", &Self::phase_peaks)
      .def("explain", &Self::explain, "device"_a)
      .def("explain_first_state", &Self::explain_first_state)
      .def("attribution", &Self::attribution, "device"_a, "modules"_a, "wrappers"_a, "depth"_a)
      .def(
          "device_books",
          [](Self& self, const std::string& device) { return value_of(self.plain().device_books(device)); }, "device"_a)
      .def("categorise", of_plain(&MemTracker::categorise), "tensor"_a, "category"_a)
      .def("parents", [](Self& self) { return self.plain().parents(); })
      .def("footprint", &Self::footprint);
}

}  // namespace plimsoll::python
