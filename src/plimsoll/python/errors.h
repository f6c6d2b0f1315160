#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <exception>

namespace plimsoll::python {

/// Prints Python's error, if any, as unraisable, with the text `doing`. Ctrl-C is not lost: the interpreter gets the
/// signal again. REQUIRES: the interpreter's lock.
inline void discard_error(const char* doing) noexcept {
  if (PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
    PyErr_Clear();
    PyErr_SetInterrupt();
    return;
  }
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* const text = PyUnicode_FromString(doing);
  if (text == nullptr) PyErr_Clear();
  PyErr_Restore(type, value, trace);
  PyErr_WriteUnraisable(text);
  Py_XDECREF(text);
}

/// For code that must not throw. REQUIRES: the interpreter's lock.
template <class Function>
void discarding_errors(const char* doing, const Function& function) noexcept {
  try {
    function();
    return;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (python_error& error) {  // torch's own type, after Python code that it called has raised.
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown type");
  }
  discard_error(doing);
}

}  // namespace plimsoll::python
