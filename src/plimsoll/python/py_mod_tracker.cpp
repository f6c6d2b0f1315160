#include "plimsoll/python/py_mod_tracker.h"

#include <optional>
#include <set>
#include <string>

#include "plimsoll/python/py_module.h"
#include "plimsoll/tracker/module_tracker.h"

namespace plimsoll::python {
namespace {

using namespace py::literals;

py::list list_of(const nn::Tensors& tensors) {
  py::list list;
  for (const auto& tensor : tensors) list.append(tensor);
  return list;
}

/// A function of Python's that any thread may call and drop.
class SharedFunction {
 public:
  explicit SharedFunction(py::object function)
      : function_(new py::object(std::move(function)), [](py::object* owned) {
          const py::gil_scoped_acquire lock;
          delete owned;
        }) {}

  template <class... Arguments>
  void operator()(const torch::nn::Module* module, const Arguments&... arguments) const {
    const py::gil_scoped_acquire lock;
    (*function_)(PyModule::object_of(module), value(arguments)...);
  }

 private:
  static py::list value(const nn::Tensors& tensors) { return list_of(tensors); }
  static py::str value(const std::string& name) { return name; }

  std::shared_ptr<py::object> function_;
};

void register_user_hooks(ModuleTracker& tracker, const py::object& pre_forward, const py::object& post_forward,
                         const py::object& pre_backward, const py::object& post_backward) {
  ModuleHooks hooks;
  if (!pre_forward.is_none()) {
    hooks.pre_forward = [hook = SharedFunction(pre_forward)](auto& module, auto& given) { hook(&module, given); };
  }
  if (!post_forward.is_none()) {
    hooks.post_forward = [hook = SharedFunction(post_forward)](auto& module, auto& given, auto& results) {
      hook(&module, given, results);
    };
  }
  if (!pre_backward.is_none()) {
    hooks.pre_backward = [hook = SharedFunction(pre_backward)](auto* module, const auto& fqn) { hook(module, fqn); };
  }
  if (!post_backward.is_none()) {
    hooks.post_backward = [hook = SharedFunction(post_backward)](auto* module, const auto& fqn) { hook(module, fqn); };
  }
  tracker.register_user_hooks(std::move(hooks));
}

}  // namespace

void bind_mod_tracker(py::module_& module) {
  py::class_<ModuleTracker>(module, "ModuleTracker")
      .def(py::init<>())
      .def("register_user_hooks", &register_user_hooks, "pre_forward"_a, "post_forward"_a, "pre_backward"_a,
           "post_backward"_a)
      .def("clear_user_hooks", &ModuleTracker::clear_user_hooks)
      .def("enter", &ModuleTracker::enter)
      .def("exit", &ModuleTracker::exit)
      .def("parents", &ModuleTracker::parents)
      .def("known_fqn",
           [](const ModuleTracker& tracker, py::handle of) { return tracker.known_fqn(*PyModule::of(of)); });
}

}  // namespace plimsoll::python
