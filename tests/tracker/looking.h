#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "capture/counting_allocator.h"
#include "plimsoll/tracker/mem_tracker.h"

/// Questions that many tests ask a tracker.

template <>
struct doctest::StringMaker<plimsoll::Snapshot> {
  static String convert(const plimsoll::Snapshot& snapshot) { return to_json(snapshot).c_str(); }
};

template <>
struct doctest::StringMaker<plimsoll::DeviceSnapshot> {
  static String convert(const plimsoll::DeviceSnapshot& snapshot) {
    return plimsoll::to_json({{"device", snapshot}}).c_str();
  }
};

namespace plimsoll {

inline DeviceSnapshot now(MemTracker& tracker, const std::string& device = "cpu") {
  const auto snapshot = tracker.snapshot();
  const auto found = snapshot.find(device);
  return found == snapshot.end() ? DeviceSnapshot() : found->second;
}

inline const DeviceSnapshot kNothing;  ///< Every category is zero.

inline std::int64_t total(MemTracker& tracker, const std::string& device = "cpu") {
  return now(tracker, device).total();
}

inline std::int64_t bytes_of(MemTracker& tracker, const std::string& category, const std::string& device = "cpu") {
  return now(tracker, device)[category];
}

/// The number of the module's calls in that state.
inline std::size_t calls(const ModuleStats& stats, ModuleState state) {
  const auto found = stats.snapshots.find(state);
  return found == stats.snapshots.end() ? 0 : found->second.size();
}

/// The expected total of the CPU, by the count below every tap. Make it right after the tracker: then it leaves out
/// older memory, which no tracker knows.
class ExpectedCpuTotal {
 public:
  explicit ExpectedCpuTotal(MemTracker& tracker)
      : unseen_(static_cast<std::int64_t>(capture::counted_cpu_bytes()) - total(tracker)) {}
  std::int64_t operator()() const { return static_cast<std::int64_t>(capture::counted_cpu_bytes()) - unseen_; }

 private:
  std::int64_t unseen_;
};

}  // namespace plimsoll
