#include <algorithm>
#include <string>

#include "plimsoll/distributed/process_group.h"
#include "plimsoll/tracker/fsdp/fsdp_watch.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"

namespace plimsoll::inline tracker {

namespace {

std::int64_t highest(const Snapshot& snapshot, std::string_view device_type) {
  std::int64_t bytes = 0;
  for (const auto& [device, of_device] : snapshot) {
    if (device.starts_with(device_type)) bytes = std::max(bytes, of_device.total());
  }
  return bytes;
}

}  // namespace

// Here, so that a program without this call does not link process groups.
RankPeak FSDPMemTracker::worst_rank() {
  const auto device_type = c10::DeviceTypeName(watch_->device().value_or(c10::kCPU).type(), /*lower_case=*/true);
  const auto own = snapshot(SnapshotKind::kPeak);
  const auto group = distributed::default_group();
  RankPeak worst{group->getRank(), own};
  if (distributed::get_backend() == "fake") return worst;
  const auto store = group->getStore();
  // All ranks exchange in the same order, each counting in the store.
  const auto exchange = store->add("plimsoll/exchanges/" + std::to_string(group->getRank()), 1);
  const std::string prefix = "plimsoll/peaks/" + std::to_string(exchange) + "/";
  store->set(prefix + std::to_string(group->getRank()), to_json(own));
  for (int rank = 0; rank < group->getSize(); ++rank) {
    const auto other = snapshot_from_json(store->get_to_str(prefix + std::to_string(rank)));
    const auto bytes = highest(other, device_type), most = highest(worst.peak, device_type);
    if (bytes > most || (bytes == most && rank < worst.rank)) worst = {rank, other};
  }
  return worst;
}

}  // namespace plimsoll::inline tracker
