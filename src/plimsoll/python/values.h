#pragma once

#include <torch/csrc/utils/pybind.h>

#include <map>
#include <string>
#include <vector>

#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "plimsoll/tracker/mem_tracker.h"

/// Answers of trackers as plain Python values. The drop-ins bring them into the forms of torch's trackers.
namespace plimsoll::python {

/// {"cuda:0": {"Parameter": 4096, …, "Total": 8192}}
py::dict value_of(const Snapshot& snapshot);
/// {"Pre-Forward": [snapshot, …]}
template <class State>
py::dict value_of(const std::map<State, std::vector<Snapshot>>& snapshots, const std::vector<State>& order) {
  py::dict by_state;
  for (const auto state : order) {
    py::list list;
    for (const auto& call : snapshots.at(state)) list.append(value_of(call));
    by_state[py::str(std::string(name(state)))] = list;
  }
  return by_state;
}
py::dict value_of(const ModuleStats& stats);
py::dict value_of(const FSDPModuleStats& stats);
py::dict value_of(const LiveTensor& tensor);
py::dict value_of(const Explanation& explanation);
py::dict value_of(const DeviceBooks& books);

template <class T>
py::list values_of(const std::vector<T>& all) {
  py::list list;
  for (const auto& one : all) list.append(value_of(one));
  return list;
}

}  // namespace plimsoll::python
