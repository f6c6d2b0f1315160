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
/// Sources of allocation events that Python starts, and storages that Python notes.
void bind_capture(py::module_& module);
/// The native half of plimsoll.ModTracker.
void bind_mod_tracker(py::module_& module);
/// Scopes of C++ that Python enters and leaves, and the borders of an optimizer's step.
void bind_scopes(py::module_& module);
/// Makes nn put hooks on leaves as Python does, beside those of the script (nn::set_leaf_hooks).
void install_leaf_hooks();

}  // namespace plimsoll::python
