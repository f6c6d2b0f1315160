#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/capture/listener.h"

namespace plimsoll::capture {

/// Keeps simple books of the events that it receives.
class RecordingListener : public Listener {
 public:
  void allocated(const Allocation& allocation) noexcept override {
    if (!alive.emplace(allocation.id, allocation).second) defects.emplace_back("allocated twice");
  }
  void freed(ledger::AllocationId id) noexcept override {
    if (alive.erase(id) == 0) defects.emplace_back("freed without being alive");
  }
  void resized(ledger::AllocationId id, Bytes bytes) noexcept override {
    ++resizes;
    alive.at(id).bytes = bytes;
  }
  void segment(c10::Device device, std::int64_t delta) noexcept override { reserved[device.str()] += delta; }
  void defect(const char* what) noexcept override { defects.emplace_back(what); }

  Bytes total(c10::Device device) const {
    Bytes sum = 0;
    for (const auto& [id, allocation] : alive) {
      if (allocation.device == device) sum += allocation.bytes;
    }
    return sum;
  }

  std::map<ledger::AllocationId, Allocation> alive;
  std::map<std::string, std::int64_t> reserved;
  std::vector<std::string> defects;
  int resizes = 0;
};

}  // namespace plimsoll::capture
