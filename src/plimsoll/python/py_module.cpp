#include "plimsoll/python/py_module.h"

#include <torch/csrc/autograd/python_variable.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace plimsoll::python {
namespace {

struct Entry {
  std::shared_ptr<PyModule> module;
  py::object weak_reference;  ///< Its callback ends the entry.
};

/// Guarded by the interpreter's lock. Never destroyed: modules may outlive static objects, and the interpreter.
std::unordered_map<PyObject*, Entry>& entries() {
  static auto* const all = new std::unordered_map<PyObject*, Entry>;
  return *all;
}

/// Calls visit(name, value) for what one of a module's dictionaries has, without what is None.
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
  auto& all = entries();
  const auto known = all.find(module.ptr());
  if (known != all.end()) return known->second.module;
  auto* const address = module.ptr();
  const py::cpp_function gone([address](const py::handle&) {
    // Taken out first: what dies with it may come back here.
    const auto entry = entries().extract(address);
  });
  py::object weak_reference = py::weakref(module, gone);
  auto made = std::make_shared<PyModule>(address);
  all.emplace(address, Entry{made, std::move(weak_reference)});
  return made;
}

py::object PyModule::object_of(const torch::nn::Module* module) {
  const auto* ours = dynamic_cast<const PyModule*>(module);
  if (ours == nullptr) return py::none();
  const auto known = entries().find(ours->address_);
  if (known == entries().end() || known->second.module.get() != ours) return py::none();
  return py::reinterpret_borrow<py::object>(ours->address_);
}

std::string PyModule::type_name() const { return py::str(py::type::of(py::handle(address_)).attr("__name__")); }

nn::NamedModules PyModule::own_children() const {
  nn::NamedModules children;
  std::unordered_set<PyObject*> seen;  // One that has two names goes by the first, as in named_children().
  for_each_item(address_, "_modules", [&](const py::handle& name, const py::handle& child) {
    if (seen.insert(child.ptr()).second) children.emplace_back(py::str(name), of(child));
  });
  return children;
}

std::vector<at::Tensor> PyModule::own_parameters() const { return tensors_in(address_, "_parameters"); }

std::vector<at::Tensor> PyModule::own_buffers() const { return tensors_in(address_, "_buffers"); }

}  // namespace plimsoll::python
