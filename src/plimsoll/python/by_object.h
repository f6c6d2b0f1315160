#pragma once

#include <torch/csrc/utils/pybind.h>

#include <unordered_map>
#include <utility>

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

}  // namespace plimsoll::python
