#pragma once

#include <torch/csrc/utils/pybind.h>

/// The parts of the extension module that have no other header.
namespace plimsoll::python {

/// Sources of allocation events that Python starts, and storages that Python notes.
void bind_capture(py::module_& module);
/// The native half of plimsoll.ModTracker.
void bind_mod_tracker(py::module_& module);
/// Scopes of C++ that Python enters and leaves, and the borders of an optimizer's step.
void bind_scopes(py::module_& module);
/// Makes nn put hooks on leaves as Python does, beside those of the script (nn::set_leaf_hooks).
void install_leaf_hooks();

}  // namespace plimsoll::python
