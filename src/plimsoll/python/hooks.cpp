#include "plimsoll/nn/hooks/hooks.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/python/bind.h"
#include "plimsoll/python/stand_ins.h"
#include "plimsoll/python/tensors.h"

namespace plimsoll::python {

using namespace py::literals;

namespace {

/// Under functorch's transforms (vmap, grad) tensors are wrappers that must not be kept or hooked.
bool is_transforming() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

/// In a compiled module torch.compile handles hooks. Not imported for this question: the import takes a second.
bool in_compiled_code() {
  static PyObject* const flag = PyUnicode_InternFromString("_in_optimized_module");
  static PyObject* eval_frame = nullptr;  // A function of the module, after its import. Never dropped.
  if (eval_frame == nullptr) {
    static PyObject* const name = PyUnicode_InternFromString("torch._dynamo.eval_frame");
    PyObject* const module = PyDict_GetItem(PyImport_GetModuleDict(), name);
    if (module == nullptr) return false;
    eval_frame = Py_NewRef(PyModule_GetDict(module));
  }
  return PyDict_GetItemWithError(eval_frame, flag) == Py_True;
}

/// Python functions; null for none.
struct Callbacks {
  py::object before_any_forward;
  py::object on_memoryless;  ///< Called with a module and its arguments if tensors have no memory.
  bool on_memoryless_always = false;
  py::object on_defect;  ///< Called with the exception of a module hook, which is then not raised.

  static Callbacks& of_process() {
    static auto* const callbacks = new Callbacks;
    return *callbacks;
  }
};

py::object none_as_null(const py::object& function) { return function.is_none() ? py::object() : function; }

thread_local const PyCall* current_call = nullptr;
thread_local bool was_raised_by_user = false;

class CurrentCall {
 public:
  explicit CurrentCall(const PyCall& call) : outer_(std::exchange(current_call, &call)) {}
  ~CurrentCall() { current_call = outer_; }
  CurrentCall(const CurrentCall&) = delete;
  CurrentCall& operator=(const CurrentCall&) = delete;

 private:
  const PyCall* outer_;
};

/// Only the storage of a fake tensor shows that it has no memory.
bool lacks_memory(const at::Tensor& tensor) {
  return tensor.is_meta() || (tensor.has_storage() && tensor.storage().device().is_meta());
}

bool any_lacks_memory(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), lacks_memory);
}

void tell_of_memoryless(py::handle module, py::handle arguments, const PyModule& stand_in, const FoundTensors& given) {
  const auto& callbacks = Callbacks::of_process();
  if (!callbacks.on_memoryless) return;
  const bool tells = callbacks.on_memoryless_always || any_lacks_memory(given.all()) ||
                     (given.all().empty() && any_lacks_memory(stand_in.own_parameters()));
  if (!tells) return;
  const py::object function = callbacks.on_memoryless;  // A copy: it may set another one.
  function(module, arguments);
}

void before_forward(py::handle module, py::handle arguments) {
  if (is_transforming() || in_compiled_code()) return;
  // A copy: it may set another one.
  if (const py::object function = Callbacks::of_process().before_any_forward) function();
  const auto stand_in = PyModule::of(module);
  FoundTensors found;
  found.add(arguments);
  tell_of_memoryless(module, arguments, *stand_in, found);
  const PyCall call{arguments, {}};
  const CurrentCall current(call);
  nn::HookedCall(*stand_in, *stand_in, found.as_arguments()).before();
}

void after_forward(py::handle module, py::handle arguments, py::handle keywords, py::handle result) {
  if (is_transforming() || in_compiled_code()) return;
  const auto stand_in = PyModule::of(module);
  FoundTensors given, results;
  given.add(arguments);
  given.add(keywords);
  results.add(result);
  const PyCall call{arguments, result};
  const CurrentCall current(call);
  nn::HookedCall(*stand_in, *stand_in, given.as_arguments()).after(results.as_arguments());
}

/// The result of a hook that has raised. An error that is not an Exception (Ctrl-C) is raised even with a listener.
PyObject* raised_in(const char* hook) {
  const py::object function = Callbacks::of_process().on_defect;
  if (!function || was_raised_by_user || PyErr_ExceptionMatches(PyExc_Exception) == 0) return nullptr;
  HANDLE_TH_ERRORS
  const py::error_already_set error;
  function(hook, error.value());
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

// Each call of a module calls both hooks, so they avoid pybind11's search for argument types.

template <class Work>
PyObject* guarded(const char* hook, const Work& work) {
  was_raised_by_user = false;
  PyObject* const result = [&]() -> PyObject* {
    HANDLE_TH_ERRORS
    work();
    Py_RETURN_NONE;
    END_HANDLE_TH_ERRORS
  }();
  return result != nullptr ? result : raised_in(hook);
}

PyObject* before_forward_hook(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return guarded("before_forward", [&] {
    TORCH_CHECK_TYPE(count == 2, "before_forward takes a module and its arguments");
    before_forward(given[0], given[1]);
  });
}

/// If forward raised, torch calls it without the keyword arguments.
PyObject* after_forward_hook(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return guarded("after_forward", [&] {
    TORCH_CHECK_TYPE(count == 3 || count == 4, "after_forward takes a module, its arguments, keywords and its result");
    after_forward(given[0], given[1], count == 4 ? given[2] : nullptr, given[count - 1]);
  });
}

// --- Calls of modules without hooks of their own ---------------------------------------------------------------------

/// torch's tables of hooks of all modules, by kind.
struct GlobalHooks {
  py::dict forward_pre, forward, backward_pre, backward;

  static GlobalHooks& of_process() {
    static auto* const hooks = new GlobalHooks;
    return *hooks;
  }

  py::object own_pre = {}, own = {};

  /// Whether the two hooks above are the only global ones. The tables have them for modules with hooks of their own.
  bool are_ours() const {
    return has_only(forward_pre, own_pre) && has_only(forward, own) && backward_pre.empty() && backward.empty();
  }

 private:
  static bool has_only(const py::dict& table, const py::object& hook) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t place = 0;
    return PyDict_GET_SIZE(table.ptr()) == 1 && PyDict_Next(table.ptr(), &place, &key, &value) != 0 &&
           value == hook.ptr();
  }
};

bool has_own_hooks(PyObject* module) {
  static PyObject* const tables[] = {
      PyUnicode_InternFromString("_forward_pre_hooks"), PyUnicode_InternFromString("_forward_hooks"),
      PyUnicode_InternFromString("_backward_pre_hooks"), PyUnicode_InternFromString("_backward_hooks")};
  PyObject** const attributes = _PyObject_GetDictPtr(module);
  if (attributes == nullptr || *attributes == nullptr) return true;
  return std::ranges::any_of(tables, [&](PyObject* name) {
    PyObject* const table = PyDict_GetItemWithError(*attributes, name);
    return table == nullptr || !PyDict_Check(table) || PyDict_GET_SIZE(table) != 0;
  });
}

/// Calls a hook as torch calls always-call hooks: without a result, and an exception becomes a warning. An error that
/// is not an Exception (Ctrl-C) is dropped.
void tell_of_failed_forward(PyObject* module, PyObject* arguments) {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
  const py::error_scope raised;
  PyObject* const given[] = {module, arguments, Py_None};
  if (py::reinterpret_steal<py::object>(after_forward_hook(nullptr, given, 3))) return;
  const py::error_already_set error;
  const std::string text = std::string("a hook of plimsoll's raised, after the forward did: ") + error.what();
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) PyErr_Clear();
}

/// Calls the module's forward between the two hooks, if no other hooks exist: see hooks.py.
PyObject* call_forward(PyObject*, PyObject* const* given, Py_ssize_t count) {
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "call_forward takes a module, its arguments, keywords, and what says: not called");
    return nullptr;
  }
  PyObject *const module = given[0], *const arguments = given[1], *const keywords = given[2];
  if (!GlobalHooks::of_process().are_ours() || has_own_hooks(module) || torch::jit::tracer::isTracing()) {
    return Py_NewRef(given[3]);
  }
  static PyObject* const name = PyUnicode_InternFromString("forward");
  const auto forward = py::reinterpret_steal<py::object>(PyObject_GetAttr(module, name));
  if (!forward) return nullptr;
  const auto told = py::reinterpret_steal<py::object>(before_forward_hook(nullptr, given, 2));
  py::object result;
  if (told) result = py::reinterpret_steal<py::object>(PyObject_Call(forward.ptr(), arguments, keywords));
  if (!result) {
    tell_of_failed_forward(module, arguments);
    return nullptr;
  }
  PyObject* const all[] = {module, arguments, keywords, result.ptr()};
  if (!py::reinterpret_steal<py::object>(after_forward_hook(nullptr, all, 4))) return nullptr;
  return result.release().ptr();
}

template <class Hook>
PyMethodDef method(const char* name, Hook* hook) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(hook)), METH_FASTCALL, nullptr};
}

PyMethodDef module_hooks[] = {method("before_forward", &before_forward_hook),
                              method("after_forward", &after_forward_hook), method("call_forward", &call_forward)};

}  // namespace

const PyCall& PyCall::current() {
  TORCH_INTERNAL_ASSERT(current_call != nullptr, "no hook of a module's forward runs on this thread");
  return *current_call;
}

void raised_by_user() { was_raised_by_user = true; }

void bind_hooks(py::module_& module) {
  for (auto& hook : module_hooks) {
    module.attr(hook.ml_name) = py::reinterpret_steal<py::object>(PyCFunction_New(&hook, nullptr));
  }
  module.def(
      "set_global_hooks",
      [module](const py::dict& forward_pre, const py::dict& forward, const py::dict& backward_pre,
               const py::dict& backward) {
        GlobalHooks::of_process() = {
            forward_pre, forward, backward_pre, backward, module.attr("before_forward"), module.attr("after_forward")};
      },
      "forward_pre"_a, "forward"_a, "backward_pre"_a, "backward"_a);
  const auto bind_setter = [&](const char* name, py::object Callbacks::* callback) {
    module.def(
        name, [callback](const py::object& function) { Callbacks::of_process().*callback = none_as_null(function); },
        "function"_a);
  };
  bind_setter("set_before_any_forward", &Callbacks::before_any_forward);
  bind_setter("set_on_defect", &Callbacks::on_defect);
  module.def(
      "set_on_memoryless",
      [](const py::object& function, bool always) {
        Callbacks::of_process().on_memoryless = none_as_null(function);
        Callbacks::of_process().on_memoryless_always = always;
      },
      "function"_a, "always"_a);
}

}  // namespace plimsoll::python
