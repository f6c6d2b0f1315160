#include "plimsoll/fsdp/group/comm_context.h"

namespace plimsoll::fsdp {

void FSDPCommContext::lazy_init(at::Device device) {
  if (std::exchange(initialized_, true)) return;
  // Copies in and out on these streams should not queue behind compute.
  constexpr int kHighPriority = -1;
  all_gather_copy_in_stream = Stream::create(device, kHighPriority);
  all_gather_stream = Stream::create(device, kHighPriority);
  reduce_scatter_stream = Stream::create(device, kHighPriority);
  all_reduce_stream = Stream::create(device);
}

AllGatherStreams FSDPCommContext::get_all_gather_streams(bool async_op, TrainingState training_state,
                                                         at::Device device) const {
  if (!async_op && (training_state == TrainingState::kForward || training_state == TrainingState::kPreBackward)) {
    return {.copy_in = all_gather_copy_in_stream, .all_gather = all_gather_stream};
  }
  const Stream current = Stream::current(device);
  return {.copy_in = current, .all_gather = current};
}

void FSDPCommContext::set_last_post_reduce_event(const Stream& stream, Event event) {
  for (auto& [known, last] : last_post_reduce_events) {
    if (known == stream) {
      last = std::move(event);
      return;
    }
  }
  last_post_reduce_events.emplace_back(stream, std::move(event));
}

}  // namespace plimsoll::fsdp
