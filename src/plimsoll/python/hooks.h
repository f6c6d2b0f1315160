#pragma once

#include <torch/csrc/utils/pybind.h>

namespace plimsoll::python {

/// The call of a Python module that runs its hooks on this thread now.
struct PyCall {
  py::handle arguments;  ///< the positional ones
  py::handle result;     ///< null before forward

  /// REQUIRES: hooks of a module's forward run on this thread.
  static const PyCall& current();
};

/// Says that a hook of the user's has raised. The rest of this module hook passes the exception on, even if exceptions
/// of our own hooks are not passed on.
void raised_by_user();

/// The functions that the hooks of python/plimsoll/trackers call.
void bind_hooks(py::module_& module);

}  // namespace plimsoll::python
