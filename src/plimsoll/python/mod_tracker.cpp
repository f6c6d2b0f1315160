#include <memory>
#include <utility>

#include "plimsoll/python/bind.h"
#include "plimsoll/python/stand_ins.h"
#include "plimsoll/tracker/module_tracker.h"

namespace plimsoll::python {
namespace {

using namespace py::literals;

template <class Tensors>
py::list list_of(const Tensors& tensors) {
  py::list list;
  for (const at::Tensor& tensor : tensors) list.append(tensor.defined() ? py::cast(tensor) : py::none());
  return list;
}

/// A Python function that any thread may call and drop.
class SharedFunction {
 public:
  explicit SharedFunction(py::object function)
      : function_(new py::object(std::move(function)), [](py::object* owned) {
          const py::gil_scoped_acquire lock;
          delete owned;
        }) {}

  /// `values()` makes the arguments after the module, with the interpreter's lock held.
  template <class Values>
  void operator()(const torch::nn::Module* module, const Values& values) const {
    const py::gil_scoped_acquire lock;
    try {
      (*function_)(PyModule::object_of(module), *py::tuple(values()));
    } catch (...) {
      raised_by_user();
      throw;
    }
  }

 private:
  std::shared_ptr<py::object> function_;
};

// Gradients have the forms of torch's hooks on several tensors: the first gradient is the only argument, all gradients
// are one list, and a backward that ends with the pass has none.
void register_user_hooks(ModuleTracker& tracker, const py::object& pre_forward, const py::object& post_forward,
                         const py::object& pre_backward, const py::object& post_backward) {
  ModuleHooks hooks;
  if (!pre_forward.is_none()) {
    hooks.pre_forward = [hook = SharedFunction(pre_forward)](auto& module, auto&) {
      hook(&module, [] { return py::make_tuple(PyCall::current().arguments); });
    };
  }
  if (!post_forward.is_none()) {
    hooks.post_forward = [hook = SharedFunction(post_forward)](auto& module, auto&, auto&) {
      hook(&module, [] { return py::make_tuple(PyCall::current().arguments, PyCall::current().result); });
    };
  }
  if (!pre_backward.is_none()) {
    hooks.pre_backward = [hook = SharedFunction(pre_backward)](auto* module, const auto&, const auto& gradients) {
      hook(module, [&] { return py::make_tuple(py::tuple(list_of(gradients))); });
    };
  }
  if (!post_backward.is_none()) {
    hooks.post_backward = [hook = SharedFunction(post_backward)](auto* module, const auto&, const auto& gradients) {
      hook(module,
           [&] { return py::make_tuple(gradients.empty() ? py::tuple() : py::make_tuple(list_of(gradients))); });
    };
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
