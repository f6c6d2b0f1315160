#pragma once

#include <torch/csrc/utils/pybind.h>

#include <unordered_map>
#include <utility>

namespace plimsoll::python {

/// What is known of objects of Python's, each until Python lets go of the object. Guarded by the interpreter's lock.
/// REQUIRES: it is never destroyed, because objects may outlive static ones.
template <class Value>
class ByObject {
 public:
  /// Null where nothing is known of it.
  const Value* find(PyObject* object) const {
    const auto entry = entries_.find(object);
    return entry == entries_.end() ? nullptr : &entry->second.value;
  }

  /// What is known of it; that is `make()` where nothing was.
  template <class Make>
  const Value& get(py::handle object, const Make& make) {
    auto* const address = object.ptr();
    if (const auto* known = find(address)) return *known;
    const py::cpp_function gone([this, address](const py::handle&) {
      // Taken out first: what dies with it may come back here.
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
