#include "plimsoll/job/job.h"

namespace plimsoll::job {

CheckpointKind Checkpoint::of(std::int64_t block) const {
  if (ranges.empty()) return every <= 1 || (block + 1) % every == 0 ? kind : CheckpointKind::kNone;
  for (const Range& range : ranges) {
    if (range.first <= block && block <= range.last) return range.kind;
  }
  return CheckpointKind::kNone;
}

}  // namespace plimsoll::job
