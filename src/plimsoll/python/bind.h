#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "plimsoll/tracker/fsdp/fsdp_runtime.h"

/// The parts of the extension module that have no other header.
namespace plimsoll::python {

void bind_trackers(py::module_& module);
/// The functions that the patches of FSDP2 call; each sends an event to all listeners.
void bind_fsdp(py::module_& module);
/// torch's own FSDP2 for a tracker. `look` is the module python/plimsoll/trackers/fsdp2/parts.py, or an object with its
/// functions.
std::unique_ptr<FSDPRuntime> python_fsdp(py::object look);
/// The native half of plimsoll.ModTracker.
void bind_mod_tracker(py::module_& module);
/// The functions that the hooks of python/plimsoll/trackers call.
void bind_hooks(py::module_& module);

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

}  // namespace plimsoll::python
