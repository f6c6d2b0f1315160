#include "plimsoll/python/tracker.h"

#include "plimsoll/python/fsdp.h"
#include "plimsoll/python/module.h"
#include "plimsoll/python/optimizer.h"
#include "plimsoll/python/tensors.h"
#include "plimsoll/python/values.h"
#include "plimsoll/report/document.h"
#include "plimsoll/tracker/attribution/attribution.h"

namespace plimsoll::python {

using namespace py::literals;

PyTracker::PyTracker(py::object look) : is_fsdp_(!look.is_none()) {
  if (is_fsdp_) {
    tracker_ = std::make_unique<FSDPMemTracker>(std::make_unique<PyFSDP>(std::move(look)));
  } else {
    tracker_ = std::make_unique<MemTracker>();
  }
}

FSDPMemTracker& PyTracker::fsdp() {
  TORCH_CHECK(is_fsdp_, "only a tracker of FSDP modules can be asked this");
  return static_cast<FSDPMemTracker&>(*tracker_);
}

void PyTracker::enter() { scopes_.push_back(tracker_->enter()); }

void PyTracker::leave() {
  TORCH_CHECK(!scopes_.empty(), "a tracker was left that is not entered");
  scopes_.pop_back();
}

void PyTracker::add_root(py::handle module) { fsdp().add_root(*PyModule::of(module)); }

void PyTracker::track_module(py::handle module) { tracker_->track_module(*PyModule::of(module)); }

void PyTracker::track_optimizer(py::object optimizer) {
  PyOptimizer observed(std::move(optimizer));
  tracker_->track_optimizer(observed);
}

void PyTracker::track_tensor(const at::Tensor& tensor) { tracker_->track_tensor(tensor); }

void PyTracker::track_inputs(py::handle inputs) {
  FoundTensors found;
  found.add(inputs);
  fsdp().track_inputs(found.all());
}

py::dict PyTracker::snapshot(bool peak) {
  return value_of(tracker_->snapshot(peak ? SnapshotKind::kPeak : SnapshotKind::kCurrent));
}

py::list PyTracker::module_stats() { return values_of(tracker_->module_stats()); }

py::list PyTracker::roots() {
  py::list roots;
  for (const auto& [name, root] : tracker_->roots()) {
    const auto module = PyModule::object_of(root.lock().get());
    if (!module.is_none()) roots.append(py::make_tuple(name, module));
  }
  return roots;
}

py::list PyTracker::fsdp_module_stats() { return values_of(fsdp().fsdp_module_stats()); }

void PyTracker::reset_mod_stats() {
  if (is_fsdp_) {
    fsdp().reset_mod_stats();
  } else {
    tracker_->reset_mod_stats();
  }
}

py::list PyTracker::alive_at_peak(const std::string& device) { return values_of(tracker_->alive_at_peak(device)); }

py::list PyTracker::step_peaks() {
  py::list steps;
  for (const auto& step : tracker_->step_peaks()) steps.append(py::make_tuple(step.step, value_of(step.peak)));
  return steps;
}

py::dict PyTracker::phase_peaks() {
  py::dict phases;
  for (const auto& [phase, snapshot] : tracker_->phase_peaks()) phases[py::str(phase)] = value_of(snapshot);
  return phases;
}

py::object PyTracker::explain(const std::string& device) {
  return value_of(is_fsdp_ ? fsdp().explain() : tracker_->explain(device));
}

py::object PyTracker::explain_first_state() {
  const auto explanation = fsdp().explain_first_state();
  return explanation ? py::object(value_of(*explanation)) : py::none();
}

std::string PyTracker::attribution(const std::string& device, const std::vector<Entry>& modules,
                                   std::vector<std::string> wrappers, int depth) {
  ModuleTree tree{.modules = {}, .wrappers = std::move(wrappers)};
  for (const auto& [name, type, fsdp_unit, parameters] : modules) {
    tree.modules.push_back({name, type, fsdp_unit, parameters});
  }
  return report::to_json(plimsoll::attribution(*tracker_, device, tree, depth));
}

py::dict PyTracker::device_books(const std::string& device) { return value_of(tracker_->device_books(device)); }

void PyTracker::categorise(const at::Tensor& tensor, const std::string& category) {
  tracker_->categorise(tensor, category);
}

std::size_t PyTracker::footprint() {
  const auto footprint = tracker_->footprint();
  return footprint.ledger_bytes + footprint.entries * sizeof(std::uint64_t);
}

void bind_trackers(py::module_& module) {
  py::class_<PyTracker>(module, "Tracker")
      .def(py::init<py::object>(), "fsdp"_a = py::none())
      .def("enter", &PyTracker::enter)
      .def("leave", &PyTracker::leave)
      .def("set_preparing", &PyTracker::set_preparing, "preparing"_a)
      .def("name_apart", &PyTracker::name_apart)
      .def_property_readonly("entered", &PyTracker::entered)
      .def("add_root", &PyTracker::add_root, "module"_a)
      .def("track_module", &PyTracker::track_module, "module"_a)
      .def("track_optimizer", &PyTracker::track_optimizer, "optimizer"_a)
      .def("track_tensor", &PyTracker::track_tensor, "tensor"_a)
      .def("track_inputs", &PyTracker::track_inputs, "inputs"_a)
      .def("snapshot", &PyTracker::snapshot, "peak"_a = false)
      .def("module_stats", &PyTracker::module_stats)
      .def("roots", &PyTracker::roots)
      .def("fsdp_module_stats", &PyTracker::fsdp_module_stats)
      .def("reset_mod_stats", &PyTracker::reset_mod_stats)
      .def("alive_at_peak", &PyTracker::alive_at_peak, "device"_a)
      .def("step_peaks", &PyTracker::step_peaks)
      .def("phase_peaks", &PyTracker::phase_peaks)
      .def("explain", &PyTracker::explain, "device"_a)
      .def("explain_first_state", &PyTracker::explain_first_state)
      .def("attribution", &PyTracker::attribution, "device"_a, "modules"_a, "wrappers"_a, "depth"_a)
      .def("device_books", &PyTracker::device_books, "device"_a)
      .def("categorise", &PyTracker::categorise, "tensor"_a, "category"_a)
      .def("parents", &PyTracker::parents)
      .def("footprint", &PyTracker::footprint);
}

}  // namespace plimsoll::python
