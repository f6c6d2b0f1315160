#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/categories.h"
#include "plimsoll/base/text.h"
#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/capture/noted_storages.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/python/bind.h"
#include "plimsoll/python/stand_ins.h"
#include "plimsoll/python/tensors.h"
#include "plimsoll/tracker/tracked_ledger.h"

namespace plimsoll::python {

using namespace py::literals;

namespace {

/// The table of categories, in the order in which tables show them.
py::list categories() {
  py::list list;
  for (const auto& category : kCategories) {
    list.append(py::dict("name"_a = category.name, "torch_mem"_a = category.torch_mem,
                         "torch_fsdp"_a = category.torch_fsdp, "words"_a = category.words));
  }
  return list;
}

/// The indices of the names, in natural order.
std::vector<std::size_t> natural_order(const std::vector<std::string>& names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, natural_less, [&](std::size_t index) { return names[index]; });
  return order;
}

c10::Storage storage_of(py::handle storage) {
  TORCH_CHECK_TYPE(torch::isStorage(storage.ptr()), "expected an UntypedStorage");
  return torch::createStorage(storage.ptr());
}

/// Sources of allocation events that Python starts, and storages that Python notes.
void bind_capture(py::module_& module) {
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

/// Scopes of C++ that Python enters and leaves, and the borders of an optimizer's step.
void bind_scopes(py::module_& module) {
  module.def("step_begins", [](py::object optimizer) {
    PyOptimizer observed(std::move(optimizer));
    nn::foreign_step_begins(observed);
  });
  module.def("step_over", [](py::object optimizer) {
    PyOptimizer observed(std::move(optimizer));
    nn::foreign_step_over(observed);
  });
  module.def("in_backward", [] { return torch::autograd::get_current_graph_task_id() != -1; });
  bind_scope<nn::detail::RecomputationScope>(module, "Recomputation");
  bind_scope<nn::StateCreation>(module, "StateCreation");
  bind_scope<GradientBuckets>(module, "GradientBuckets");
}

void bind_all(py::module_& module) {
  module.doc() = "The native part of plimsoll: ledger, capture and trackers. Use plimsoll's own modules instead.";
  install_unwrap();
  install_leaf_hooks();
  bind_trackers(module);
  bind_mod_tracker(module);
  bind_capture(module);
  bind_hooks(module);
  bind_scopes(module);
  bind_fsdp(module);
  module.def("categories", &categories);
  module.def("natural_order", &natural_order);
  module.def("format_bytes", [](Bytes bytes) { return format_bytes(bytes); });
}

}  // namespace
}  // namespace plimsoll::python

// The same objects make both modules. The libraries beside them decide which variant this is.
PYBIND11_MODULE(_C, module) { plimsoll::python::bind_all(module); }
PYBIND11_MODULE(_C_cpu, module) { plimsoll::python::bind_all(module); }
