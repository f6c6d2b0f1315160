#pragma once

#include <torch/csrc/utils/pybind.h>

namespace plimsoll::python {

/// What Python tells libraries of C++ that they see by themselves in a program of C++: where a step of an optimizer
/// begins and ends, and the scopes of what a thread does.
void bind_scopes(py::module_& module);

}  // namespace plimsoll::python
