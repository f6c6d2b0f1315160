#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/categories.h"
#include "plimsoll/base/text.h"
#include "plimsoll/python/bind.h"
#include "plimsoll/python/hooks.h"
#include "plimsoll/python/tensors.h"

namespace {

using namespace py::literals;

/// The table of categories, in the order in which tables show them.
py::list categories() {
  py::list list;
  for (const auto& category : plimsoll::kCategories) {
    list.append(py::dict("name"_a = category.name, "torch_mem"_a = category.torch_mem,
                         "torch_fsdp"_a = category.torch_fsdp, "words"_a = category.words));
  }
  return list;
}

/// The indices of the names, in natural order.
std::vector<std::size_t> natural_order(const std::vector<std::string>& names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, plimsoll::natural_less, [&](std::size_t index) { return names[index]; });
  return order;
}

void bind_all(py::module_& module) {
  module.doc() = "The native part of plimsoll: ledger, capture and trackers. Use plimsoll's own modules instead.";
  plimsoll::python::install_unwrap();
  plimsoll::python::install_leaf_hooks();
  plimsoll::python::bind_trackers(module);
  plimsoll::python::bind_mod_tracker(module);
  plimsoll::python::bind_capture(module);
  plimsoll::python::bind_hooks(module);
  plimsoll::python::bind_scopes(module);
  plimsoll::python::bind_fsdp(module);
  module.def("categories", &categories);
  module.def("natural_order", &natural_order);
  module.def("format_bytes", [](plimsoll::Bytes bytes) { return plimsoll::format_bytes(bytes); });
}

}  // namespace

// The same objects make both modules. The libraries beside them decide which variant this is.
PYBIND11_MODULE(_C, module) { bind_all(module); }
PYBIND11_MODULE(_C_cpu, module) { bind_all(module); }
