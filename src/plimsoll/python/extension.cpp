#include <torch/csrc/utils/pybind.h>

#include "plimsoll/python/py_capture.h"
#include "plimsoll/python/py_fsdp.h"
#include "plimsoll/python/py_hooks.h"
#include "plimsoll/python/py_leaf_hooks.h"
#include "plimsoll/python/py_mod_tracker.h"
#include "plimsoll/python/py_scopes.h"
#include "plimsoll/python/py_tensors.h"
#include "plimsoll/python/py_tracker.h"

namespace {

void bind_all(py::module_& module) {
  module.doc() = "The native part of plimsoll: ledger, capture and trackers. Use plimsoll's own modules instead.";
  plimsoll::python::install_unwrap();
  plimsoll::python::install_leaf_hooks();
  plimsoll::python::bind_trackers(module);
  plimsoll::python::bind_mod_tracker(module);
  plimsoll::python::bind_capture(module);
  plimsoll::python::bind_hooks(module);
  plimsoll::python::bind_scopes(module);
  plimsoll::python::bind_fsdp(module);
}

}  // namespace

// The same objects make both modules; which one it is, the libraries beside them decide.
PYBIND11_MODULE(_C, module) { bind_all(module); }
PYBIND11_MODULE(_C_cpu, module) { bind_all(module); }
