#include "plimsoll/python/stand_ins.h"

#include <torch/csrc/autograd/python_variable.h>

#include <unordered_set>

#include "plimsoll/python/tensors.h"

namespace plimsoll::python {
namespace {

ByObject<std::shared_ptr<PyModule>>& stand_ins() {
  static auto* const all = new ByObject<std::shared_ptr<PyModule>>;
  return *all;
}

/// Calls visit(name, value) for each entry of a module's dictionary, except None.
template <class Visit>
void for_each_item(PyObject* module, const char* dictionary, const Visit& visit) {
  const auto found = py::handle(module).attr(dictionary);
  const py::object items = found.attr("items")();
  for (const auto& item : items) {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    if (!pair[1].is_none()) visit(pair[0], pair[1]);
  }
}

std::vector<at::Tensor> tensors_in(PyObject* module, const char* dictionary) {
  std::vector<at::Tensor> tensors;
  for_each_item(module, dictionary, [&](const auto&, const py::handle& value) {
    if (THPVariable_Check(value.ptr())) tensors.push_back(THPVariable_Unpack(value.ptr()));
  });
  return tensors;
}

}  // namespace

std::shared_ptr<PyModule> PyModule::of(py::handle module) {
  return stand_ins().get(module, [&] { return std::make_shared<PyModule>(module.ptr()); });
}

py::object PyModule::object_of(const torch::nn::Module* module) {
  const auto* ours = dynamic_cast<const PyModule*>(module);
  if (ours == nullptr) return py::none();
  const auto* known = stand_ins().find(ours->address_);
  if (known == nullptr || known->get() != ours) return py::none();
  return py::reinterpret_borrow<py::object>(ours->address_);
}

std::string PyModule::type_name() const { return py::str(py::type::of(py::handle(address_)).attr("__name__")); }

nn::NamedModules PyModule::own_children() const {
  nn::NamedModules children;
  std::unordered_set<PyObject*> seen;  // A child with two names has the first, as in named_children().
  for_each_item(address_, "_modules", [&](const py::handle& name, const py::handle& child) {
    if (seen.insert(child.ptr()).second) children.emplace_back(py::str(name), of(child));
  });
  return children;
}

std::vector<at::Tensor> PyModule::own_parameters() const { return tensors_in(address_, "_parameters"); }

std::vector<at::Tensor> PyModule::own_buffers() const { return tensors_in(address_, "_buffers"); }

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
