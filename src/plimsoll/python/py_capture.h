#pragma once

#include <torch/csrc/utils/pybind.h>

namespace plimsoll::python {

/// What the capture of allocations is told by Python, and the storages that Python notes.
void bind_capture(py::module_& module);

}  // namespace plimsoll::python
