#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/nn/module_contents.h"
#include "plimsoll/nn/optim/step_observable.h"

/// C++ objects that represent Python objects.
namespace plimsoll::python {

/// Values by Python object. A value lives until Python drops its object. Guarded by the interpreter's lock.
/// REQUIRES: the table is never destroyed, because Python objects may outlive statics.
template <class Value>
class ByObject {
 public:
  /// Null if the object has no value.
  const Value* find(PyObject* object) const {
    const auto entry = entries_.find(object);
    return entry == entries_.end() ? nullptr : &entry->second.value;
  }

  /// The object's value; `make()` if it has none yet.
  template <class Make>
  const Value& get(py::handle object, const Make& make) {
    auto* const address = object.ptr();
    if (const auto* known = find(address)) return *known;
    const py::cpp_function gone([this, address](const py::handle&) {
      // Taken out first: its destructor may use this table.
      const auto entry = entries_.extract(address);
    });
    py::object weak_reference = py::weakref(object, gone);
    return entries_.emplace(address, Entry{make(), std::move(weak_reference)}).first->second.value;
  }

 private:
  struct Entry {
    Value value;
    py::object weak_reference;  ///< Its callback ends the entry.
  };
  std::unordered_map<PyObject*, Entry> entries_;
};

/// The stand-in of a Python torch.nn.Module: one for each module that was seen, until Python drops the module.
///
/// It holds no Python object, because a thread without the interpreter's lock may be the last to drop it. All other
/// uses need the lock.
class PyModule final : public nn::ForeignModule {
 public:
  static std::shared_ptr<PyModule> of(py::handle module);

  /// The Python module; None if `of` is not a stand-in, or if the module is gone.
  static py::object object_of(const torch::nn::Module* module);

  std::string type_name() const override;
  nn::NamedModules own_children() const override;
  std::vector<at::Tensor> own_parameters() const override;
  std::vector<at::Tensor> own_buffers() const override;

  /// Use `of`.
  explicit PyModule(PyObject* address) : address_(address) {}

 private:
  PyObject* const address_;  ///< Not owned. It lives while this is in the table of `of`.
};

/// A Python torch.optim.Optimizer, for the time of one look. Needs the interpreter's lock.
class PyOptimizer final : public nn::StepObservable {
 public:
  explicit PyOptimizer(py::object optimizer) : optimizer_(std::move(optimizer)) {}

  std::string optimizer_name() const override;
  std::vector<at::Tensor> parameters() const override;
  void for_each_state(const nn::StateVisitor& visit) const override;

 private:
  py::object optimizer_;
};

}  // namespace plimsoll::python
