// Prints the allocations and frees of training under FSDP on the pretend GPU, as one rank of many: for each case on
// standard input one line of JSON, like tests/python/programs/fsdp_memory.py for Python's FSDP2. test_fsdp_memory.py
// compares the two.

#include <ATen/Functions.h>

#include <exception>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fsdp/pretended_rank.h"
#include "fsdp/training.h"
#include "programs/programs.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)  // Only a CUDA build of torch has it.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace fsdp_memory {

namespace {

using namespace plimsoll;
using Json = nlohmann::ordered_json;
using scenarios::Case;
namespace allocator = c10::cuda::CUDACachingAllocator;

/// The allocator's events of a case, independent of the process.
class Recorder {
 public:
  void look(const std::string& phase) {
    phases_.push_back(phase);
    const auto stats = at::getHostAllocator(at::kCUDA)->get_stats();
    pinned_.push_back({stats.allocated_bytes.current, stats.active_bytes.current});
  }

  void note(const allocator::TraceEntry& entry) {
    using Entry = allocator::TraceEntry;
    const char* action = entry.action_ == Entry::ALLOC            ? "alloc"
                         : entry.action_ == Entry::FREE_COMPLETED ? "free_completed"
                         : entry.action_ == Entry::SEGMENT_ALLOC  ? "segment_alloc"
                         : entry.action_ == Entry::SEGMENT_FREE   ? "segment_free"
                                                                  : nullptr;
    if (action == nullptr || phases_.empty()) return;
    if (entry.action_ == Entry::SEGMENT_ALLOC) segments_.emplace_back(entry.addr_, entry.addr_ + entry.size_);
    auto segment = segments_.rbegin();
    while (segment != segments_.rend() && !(segment->first <= entry.addr_ && entry.addr_ < segment->second)) ++segment;
    if (segment == segments_.rend()) {
      stranger_ = true;
      return;
    }
    const auto stream = streams_.try_emplace(entry.stream_, streams_.size()).first->second;
    if (phases_.back() == "settle") return;
    events_.push_back({phases_.size() - 1, action, segments_.rend() - segment - 1, entry.addr_ - segment->first,
                       entry.size_, stream});
  }

  Json take(std::int64_t left) {
    TORCH_CHECK(!stranger_, "an event at an address of an earlier case: that case did not free all memory");
    return {{"phases", phases_}, {"events", events_}, {"left", left}, {"pinned", pinned_}};
  }

 private:
  std::vector<std::string> phases_;
  std::vector<std::pair<std::int64_t, std::int64_t>> pinned_;  ///< In use by the host allocator, and given out.
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> segments_;
  std::map<const void*, std::size_t> streams_;
  Json events_ = Json::array();
  bool stranger_ = false;
};

Recorder* recorder = nullptr;

Json run(const Case& c) {
  scenarios::start_world(c);
  at::cuda::clearCublasWorkspaces();
  allocator::emptyCache();
  at::getHostAllocator(at::kCUDA)->empty_cache();
  Recorder here;
  recorder = &here;
  const auto look = [&](const std::string& phase) { here.look(phase); };
  scenarios::with_training(c, at::kCUDA, look, [&](auto training) {
    training->run(c.number("rank"), [](int, const std::vector<at::Tensor>&) {});
    look("settle");
    settle();
    look("drop");
  });
  recorder = nullptr;
  at::cuda::clearCublasWorkspaces();
  return here.take(allocator::getDeviceStats(0).allocated_bytes[0].current);
}

}  // namespace

int run_program(int, char**) {
  at::empty({1}, at::TensorOptions().device(at::kCUDA));  // The first use of the device creates the allocator.
  allocator::get()->attachAllocatorTraceTracker([](const allocator::TraceEntry& entry) {
    if (recorder != nullptr) recorder->note(entry);
  });
  return scenarios::answer_cases("fsdp_memory", run);
}
const programs::Program program("fsdp_memory", &run_program);

}  // namespace fsdp_memory

#else

namespace fsdp_memory {

int run_program(int, char**) {
  std::cerr << "fsdp_memory: torch is not a CUDA build\n";
  return 1;
}

const programs::Program program("fsdp_memory", &run_program);

}  // namespace fsdp_memory

#endif
