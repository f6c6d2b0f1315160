#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/fsdp/group/all_gather.h"
#include "plimsoll/fsdp/group/streams.h"

namespace plimsoll::fsdp {

class FSDPParamGroup;

/// The position of a state or a parameter group in an iteration.
enum class TrainingState : std::uint8_t {
  kForward,       ///< From pre-forward to post-forward.
  kPreBackward,   ///< From the first gradient of the module's outputs: parameters are gathered.
  kPostBackward,  ///< Gradients are reduced, parameters freed.
  kIdle,
};

/// [Note: Overlapping copy-in and all-gather]
/// In forward, the next group's copy-in should run during the current all-gather. The copy-in writes into the buffer
/// that is then gathered, so its memory must differ from that of the pending all-gather. Therefore a group's result is
/// kept until the next group has copied out; the root drops the last one.
struct AllGatherState {
  AllGatherResult all_gather_result;
  Event event;  ///< The copy-out.
};

struct ReduceScatterState {
  at::Tensor reduce_scatter_input;
  Event event;
};

/// Communication state that all parameter groups below one root share: the streams, and buffers that one group keeps
/// for the next. Counterpart of FSDPCommContext.
struct FSDPCommContext {
  /// Creates the streams at the first call. Roots that share a context (share_comm_ctx) share them.
  void lazy_init(at::Device device);

  /// Makes the all-gather streams wait for the event.
  void all_gather_streams_wait(const Event& event) const {
    all_gather_copy_in_stream.wait_event(event);
    all_gather_stream.wait_event(event);
  }
  AllGatherStreams get_all_gather_streams(bool async_op, TrainingState training_state, at::Device device) const;

  /// Backward may run on several threads at once: one for each device type of the model's outputs.
  std::recursive_mutex mutex;

  /// The next copy-in overlaps with the current all-gather in forward; in backward, with the reduce-scatter.
  Stream all_gather_copy_in_stream;
  /// The next all-gather overlaps with the current module's compute.
  Stream all_gather_stream;
  /// Division and reduce-scatter of gradients overlap with the backward of earlier modules.
  Stream reduce_scatter_stream;
  /// HSDP's all-reduces overlap with all-gathers and reduce-scatters: they use another network.
  Stream all_reduce_stream;

  std::optional<AllGatherState> all_gather_state;
  std::vector<ReduceScatterState> reduce_scatter_states;  ///< Oldest first.
  int reduce_scatter_max_input_buffers = 1;               ///< The maximum over all groups.
  /// The last event of each stream that reduced; the end of backward waits for them.
  std::vector<std::pair<Stream, Event>> last_post_reduce_events;
  void set_last_post_reduce_event(const Stream& stream, Event event);
  /// Groups in the order in which their forwards ended, one entry for each forward. Backward prefetches from the end.
  std::vector<std::weak_ptr<FSDPParamGroup>> post_forward_order;

 private:
  bool initialized_ = false;
};

}  // namespace plimsoll::fsdp
