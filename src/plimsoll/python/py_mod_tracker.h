#pragma once

#include <torch/csrc/utils/pybind.h>

namespace plimsoll::python {

/// The native half of plimsoll.ModTracker.
void bind_mod_tracker(py::module_& module);

}  // namespace plimsoll::python
