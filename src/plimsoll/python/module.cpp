#include "plimsoll/python/module.h"

#include <torch/csrc/autograd/python_variable.h>

#include <unordered_set>

#include "plimsoll/python/by_object.h"

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

}  // namespace plimsoll::python
