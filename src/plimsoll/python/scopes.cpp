#include <torch/csrc/autograd/graph_task.h>

#include <optional>
#include <utility>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/python/bind.h"
#include "plimsoll/python/optimizer.h"
#include "plimsoll/tracker/tracked_ledger.h"

namespace plimsoll::python {
namespace {

void step_begins(py::object optimizer) {
  PyOptimizer observed(std::move(optimizer));
  nn::foreign_step_begins(observed);
}

void step_over(py::object optimizer) {
  PyOptimizer observed(std::move(optimizer));
  nn::foreign_step_over(observed);
}

/// C++ scopes that Python enters and leaves, nested, on one thread.
template <class Scope>
void bind_scope(py::module_& module, const char* name) {
  struct Held {
    std::optional<Scope> scope;
  };
  py::class_<Held>(module, name)
      .def(py::init<>())
      .def("__enter__", [](Held& held) { held.scope.emplace(); })
      .def("__exit__", [](Held& held, const py::args&) { held.scope.reset(); });
}

}  // namespace

void bind_scopes(py::module_& module) {
  module.def("step_begins", &step_begins);
  module.def("step_over", &step_over);
  module.def("in_backward", [] { return torch::autograd::get_current_graph_task_id() != -1; });
  bind_scope<nn::detail::RecomputationScope>(module, "Recomputation");
  bind_scope<nn::StateCreation>(module, "StateCreation");
  bind_scope<GradientBuckets>(module, "GradientBuckets");
}

}  // namespace plimsoll::python
