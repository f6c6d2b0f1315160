#include "plimsoll/python/optimizer.h"

#include <torch/csrc/autograd/python_variable.h>

#include "plimsoll/python/tensors.h"

namespace plimsoll::python {

std::string PyOptimizer::optimizer_name() const { return py::str(py::type::of(optimizer_).attr("__name__")); }

std::vector<at::Tensor> PyOptimizer::parameters() const {
  FoundTensors found;
  for (const auto& group : optimizer_.attr("param_groups")) found.add(group["params"]);
  return found.all();
}

void PyOptimizer::for_each_state(const nn::StateVisitor& visit) const {
  if (optimizer_.is_none()) return;  // It is gone.
  const py::object state = optimizer_.attr("state");
  if (!PyDict_Check(state.ptr())) return;  // An optimizer of the user's that keeps its state elsewhere.
  PyObject *key = nullptr, *values = nullptr;
  for (Py_ssize_t place = 0; PyDict_Next(state.ptr(), &place, &key, &values) != 0;) {
    if (!PyDict_Check(values)) continue;
    const at::Tensor parameter = THPVariable_Check(key) ? THPVariable_Unpack(key) : at::Tensor();
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t inner = 0; PyDict_Next(values, &inner, &name, &value) != 0;) {
      const char* const text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : "";
      if (THPVariable_Check(value)) {
        visit(parameter, text, THPVariable_Unpack(value));
      } else {
        FoundTensors found;  // L-BFGS keeps lists of tensors.
        found.add(value);
        for (const auto& tensor : found.all()) visit(parameter, text, tensor);
      }
    }
  }
}

}  // namespace plimsoll::python
