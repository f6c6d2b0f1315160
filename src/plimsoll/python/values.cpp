#include "plimsoll/python/values.h"

#include <torch/csrc/DynamicTypes.h>

#include "plimsoll/python/module.h"
#include "plimsoll/report/text/causes.h"

namespace plimsoll::python {

using namespace py::literals;

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

py::dict value_of(const ModuleStats& stats) {
  return py::dict("module"_a = PyModule::object_of(stats.module.lock().get()), "fqn"_a = stats.fqn,
                  "parameter_mem"_a = stats.parameter_bytes, "buffer_mem"_a = stats.buffer_bytes,
                  "input_mem"_a = stats.input_bytes, "output_mem"_a = stats.output_bytes,
                  "local_peak"_a = stats.local_peak, "snapshots"_a = value_of(stats.snapshots, stats.order));
}

py::dict value_of(const FSDPModuleStats& stats) {
  py::list modules;
  for (const auto& module : stats.modules) modules.append(PyModule::object_of(module.lock().get()));
  return py::dict("modules"_a = modules, "fqn"_a = stats.fqn, "local_peak"_a = stats.local_peak,
                  "snapshots"_a = value_of(stats.snapshots, stats.order));
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

}  // namespace plimsoll::python
