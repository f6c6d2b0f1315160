#include "plimsoll/python/tensors.h"

#include <torch/csrc/autograd/python_variable.h>

#include <memory>
#include <utility>

#include "plimsoll/capture/holders.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/python/errors.h"

namespace plimsoll::python {
namespace {

constexpr int kDeepest = 32;  ///< The limit for a structure that contains itself.

const py::handle& tensor_flatten_name() {
  static const auto* const name = new py::str("__tensor_flatten__");
  return *name;
}

void unwrap(const at::Tensor& wrapper, const capture::VisitTensor& visit, int depth) {
  const py::object tensor = py::reinterpret_steal<py::object>(THPVariable_Wrap(wrapper));
  // By the type: a missing attribute costs an exception.
  if (depth >= kDeepest || _PyType_Lookup(Py_TYPE(tensor.ptr()), tensor_flatten_name().ptr()) == nullptr) {
    return visit(wrapper);
  }
  const py::tuple flat = tensor.attr(tensor_flatten_name())();
  for (const auto& name : flat[0]) {
    const py::object inner = tensor.attr(name);
    if (!THPVariable_Check(inner.ptr())) continue;
    const auto& held = THPVariable_Unpack(inner.ptr());
    if (!held.defined()) continue;
    if (held.unsafeGetTensorImpl()->is_python_dispatch()) {
      unwrap(held, visit, depth + 1);
    } else {
      visit(held);
    }
  }
}

void unwrap_with_lock(const at::Tensor& wrapper, const capture::VisitTensor& visit) {
  const py::gil_scoped_acquire lock;
  // The caller must not throw. A wrapper that fails to name its tensors has no known memory.
  discarding_errors("plimsoll: __tensor_flatten__ of a tensor subclass", [&] { unwrap(wrapper, visit, 0); });
}

/// A hook in a tensor's Python table of hooks, which is its only owner.
class PyLeafHook final : public nn::HookOwner {
 public:
  explicit PyLeafHook(nn::TensorHook hook) : hook_(std::move(hook)) {}
  ~PyLeafHook() override {
    const py::gil_scoped_acquire lock;
    handle = {};
  }

  void remove_hook(std::uint64_t) noexcept override {
    const py::gil_scoped_acquire lock;
    discarding_errors("plimsoll: removing a hook of a tensor", [&] {
      if (handle) std::exchange(handle, {}).attr("remove")();
    });
  }

  at::Tensor operator()(const at::Tensor& gradient) const { return hook_(gradient); }

  py::object handle;

 private:
  nn::TensorHook hook_;
};

nn::HookHandle register_leaf_hook(const at::Tensor& leaf, nn::TensorHook hook) {
  const py::gil_scoped_acquire lock;
  const auto owned = std::make_shared<PyLeafHook>(std::move(hook));
  const py::object tensor = py::reinterpret_steal<py::object>(THPVariable_Wrap(leaf));
  const py::cpp_function call([owned](const at::Tensor& gradient) -> py::object {
    const auto alive = owned;
    const auto replaced = (*alive)(gradient);
    return replaced.defined() ? py::cast(replaced) : py::none();
  });
  owned->handle = tensor.attr("register_hook")(call);
  return nn::HookHandle(owned, 0);
}

}  // namespace

void FoundTensors::add(py::handle value) { add(value, 0); }

void FoundTensors::add(py::handle value, int depth) {
  PyObject* const object = value.ptr();
  if (object == nullptr || object == Py_None || depth > kDeepest) return;
  // The check for a tensor subclass is the most expensive, so it comes late.
  if (THPVariable_CheckExact(object)) {
    add_tensor(object);
  } else if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) add(PyTuple_GET_ITEM(object, i), depth + 1);
  } else if (PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) add(PyList_GET_ITEM(object, i), depth + 1);
  } else if (PyDict_Check(object)) {
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(object, &place, &key, &item) != 0;) add(item, depth + 1);
  } else if (THPVariable_Check(object)) {
    add_tensor(object);
  } else if (!PyLong_Check(object) && !PyFloat_Check(object) && !PyUnicode_Check(object)) {
    static const auto* const fields = new py::str("__dataclass_fields__");
    if (_PyType_Lookup(Py_TYPE(object), fields->ptr()) == nullptr) return;
    for (const auto& field : py::reinterpret_borrow<py::dict>(py::handle(object).attr(*fields))) {
      if (py::hasattr(object, field.first)) add(py::getattr(object, field.first), depth + 1);
    }
  }
}

void FoundTensors::add_tensor(PyObject* object) {
  const auto& tensor = THPVariable_Unpack(object);
  if (tensor.defined()) tensors_.push_back(tensor);
}

nn::Tensors& FoundTensors::as_arguments() {
  for (auto& tensor : tensors_) arguments_.add(tensor);
  return arguments_;
}

void install_unwrap() { capture::set_unwrap(&unwrap_with_lock); }

void install_leaf_hooks() { nn::set_leaf_hooks(&register_leaf_hook); }

}  // namespace plimsoll::python
