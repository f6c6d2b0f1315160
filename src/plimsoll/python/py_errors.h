#pragma once

#include <torch/csrc/utils/pybind.h>

#include <exception>

namespace plimsoll::python {

/// For where nothing may be thrown: what is raised is printed as unraisable, with what was being done. Ctrl-C is not
/// lost, the interpreter is told again. REQUIRES: the interpreter's lock.
template <class Function>
void discarding_errors(const char* doing, const Function& function) noexcept {
  try {
    function();
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) {
      PyErr_SetInterrupt();
    } else {
      error.discard_as_unraisable(doing);
    }
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    PyErr_WriteUnraisable(py::str(doing).ptr());
  }
}

}  // namespace plimsoll::python
