#pragma once

#include <torch/csrc/utils/pybind.h>

namespace plimsoll::python {

/// The call of a module of Python's whose hooks run on this thread now, as Python gave it.
struct PyCall {
  py::handle arguments;  ///< the positional ones
  py::handle result;     ///< null before forward

  /// REQUIRES: hooks of a module's forward run on this thread.
  static const PyCall& current();
};

/// What a hook of the user's raises is the user's: for the rest of this call of a module hook it is passed on, also
/// where what our own hooks raise is not.
void raised_by_user();

/// What the hooks of python/plimsoll/trackers call.
void bind_hooks(py::module_& module);

}  // namespace plimsoll::python
