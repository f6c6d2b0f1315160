// The answers of FSDPMemTracker for one training step on the pretend GPU, as one rank of many, for each case on
// standard input: one line of JSON each, in the form of tests/python/programs/fsdp_tracker.py, which asks torch's own.
// test_fsdp_tracker.py compares the two.

#include <ATen/Functions.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "fsdp/pretended_rank.h"
#include "fsdp/training.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "programs/programs.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)  // Only a CUDA build of torch has it.
#include <c10/cuda/CUDACachingAllocator.h>

namespace fsdp_tracker {

namespace {

using namespace plimsoll;
using Json = nlohmann::ordered_json;
using scenarios::Case;
namespace allocator = c10::cuda::CUDACachingAllocator;

Json to_value(const Snapshot& snapshot) { return Json::parse(to_json(snapshot)); }

/// cuBLAS's, of this thread and of autograd's: there from the beginning on, they do not decide where a peak is.
void take_workspaces() {
  const auto matrix = at::ones({2, 2}, at::TensorOptions().device(at::kCUDA)).set_requires_grad(true);
  at::matmul(matrix, matrix).sum().backward();
}

template <class Training>
Json track(Training& training, int rank) {
  const auto batch = training.batch(rank);
  FSDPMemTracker tracker(training.root(), training.optimizer());
  tracker.track_inputs(batch.inputs, batch.targets);
  Json found = {{"points", Json::object()}, {"peak", nullptr}, {"modules", Json::object()}};
  {
    const auto scope = tracker.enter();
    training.watched_step(batch,
                          [&](const std::string& point) { found["points"][point] = to_value(tracker.snapshot()); });
  }
  found["peak"] = to_value(tracker.snapshot(SnapshotKind::kPeak));
  for (const auto& module : tracker.fsdp_module_stats()) {
    auto& states = found["modules"][module.fqn] = Json::object();
    for (const auto& [state, snapshots] : module.snapshots) {
      for (const auto& snapshot : snapshots) states[std::string(name(state))].push_back(to_value(snapshot));
    }
  }
  return found;
}

Json run(const Case& c) {
  scenarios::start_world(c);
  at::cuda::clearCublasWorkspaces();
  allocator::emptyCache();
  take_workspaces();
  return scenarios::with_training(
      c, at::kCUDA, [](const std::string&) {},
      [&](auto training) {
        auto found = track(*training, c.number("rank"));
        settle();
        return found;
      });
}

}  // namespace

int run_program(int, char**) { return scenarios::answer_cases("fsdp_tracker", run); }
const programs::Program program("fsdp_tracker", &run_program);

}  // namespace fsdp_tracker

#else

namespace fsdp_tracker {

int run_program(int, char**) {
  std::cerr << "fsdp_tracker: torch is not a CUDA build\n";
  return 1;
}

const programs::Program program("fsdp_tracker", &run_program);

}  // namespace fsdp_tracker

#endif
