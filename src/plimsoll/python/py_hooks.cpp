#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/utils/pybind.h>

#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/capture/noted_storages.h"
#include "plimsoll/nn/checkpoint.h"
#include "plimsoll/nn/hooks.h"
#include "plimsoll/python/py_fsdp.h"
#include "plimsoll/python/py_module.h"
#include "plimsoll/python/py_optimizer.h"
#include "plimsoll/python/py_tensors.h"
#include "plimsoll/python/py_tracker.h"

namespace plimsoll::python {

using namespace py::literals;

namespace {

/// Under functorch's transforms (vmap, grad) tensors are wrappers that must not be kept or hooked.
bool is_transforming() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

void before_forward(py::handle module, py::handle arguments) {
  if (is_transforming()) return;
  const auto stand_in = PyModule::of(module);
  FoundTensors found;
  found.add(arguments);
  nn::HookedCall(*stand_in, *stand_in, found.as_arguments()).before();
}

void after_forward(py::handle module, py::handle arguments, py::handle keywords, py::handle result) {
  if (is_transforming()) return;
  const auto stand_in = PyModule::of(module);
  FoundTensors given, results;
  given.add(arguments);
  given.add(keywords);
  results.add(result);
  nn::HookedCall(*stand_in, *stand_in, given.as_arguments()).after(results.as_arguments());
}

void step_begins(py::object optimizer) {
  PyOptimizer observed(std::move(optimizer));
  nn::foreign_step_begins(observed);
}

void step_over(py::object optimizer) {
  PyOptimizer observed(std::move(optimizer));
  nn::foreign_step_over(observed);
}

/// Scopes of C++ that Python enters and leaves. On one thread, nested.
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

c10::Storage storage_of(py::handle storage) {
  TORCH_CHECK_TYPE(torch::isStorage(storage.ptr()), "expected an UntypedStorage");
  return torch::createStorage(storage.ptr());
}

}  // namespace

void bind_hooks(py::module_& module) {
  module.def("before_forward", &before_forward);
  module.def("after_forward", &after_forward);
  module.def("step_begins", &step_begins);
  module.def("step_over", &step_over);
  module.def("in_backward", [] { return torch::autograd::get_current_graph_task_id() != -1; });
  bind_scope<nn::detail::RecomputationScope>(module, "Recomputation");
  bind_scope<nn::StateCreation>(module, "StateCreation");

  module.def("wait_for_cuda", &capture::wait_for_cuda);
  module.def("start_late_sources", &capture::start_late_sources);
  module.def(
      "note_storage",
      [](py::handle storage, const at::Device& device, std::uint64_t bytes) {
        return capture::note_storage(storage_of(storage), device, bytes);
      },
      "storage"_a, "device"_a, "bytes"_a);
  module.def(
      "noted_storage_resized",
      [](py::handle storage, std::uint64_t bytes) { capture::noted_storage_resized(storage_of(storage), bytes); },
      "storage"_a, "bytes"_a);

  module.def("tell_state", [](int stage, py::handle state) { tell_state(static_cast<fsdp::Stage>(stage), state); });
  module.def("tell_group", [](int stage, py::handle group) { tell_group(static_cast<fsdp::Stage>(stage), group); });
  module.def("tell_memory", [](int use, const at::Tensor& tensor, py::handle group) {
    tell_memory(static_cast<fsdp::MemoryUse>(use), tensor, group);
  });
  module.def("adopt_parameter", &adopt_parameter, "parameter"_a, "group"_a, "whole"_a);
  module.def("use_begins", [](int use, py::handle group, const at::Device& device) {
    use_begins(static_cast<fsdp::MemoryUse>(use), group, device);
  });
  module.def("use_over", &use_over);
}

}  // namespace plimsoll::python
