#pragma once

#include <torch/csrc/utils/pybind.h>

namespace plimsoll::python {

/// What the hooks of python/plimsoll/trackers call.
void bind_hooks(py::module_& module);

}  // namespace plimsoll::python
