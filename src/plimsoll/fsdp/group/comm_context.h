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

/// Where a state or a group of parameters is in an iteration.
enum class TrainingState : std::uint8_t {
  kForward,       ///< From pre-forward to post-forward.
  kPreBackward,   ///< From the first gradient of the module's outputs on: parameters are gathered.
  kPostBackward,  ///< Gradients are reduced, parameters freed.
  kIdle,
};

/// [Note: Overlapping copy-in and all-gather]
/// In forward the next group's copy-in should run while the current all-gather does. The copy-in writes into the buffer
/// that is then gathered, so it must get other memory than the all-gather under way uses: a group's result is kept
/// until the next group has copied out of its own, and the root drops the last one.
struct AllGatherState {
  AllGatherResult all_gather_result;
  Event event;  ///< The copy-out.
};

struct ReduceScatterState {
  at::Tensor reduce_scatter_input;
  Event event;
};

/// Communication that all groups of parameters below one root share: the streams, and what one group leaves for the
/// next. Counterpart of FSDPCommContext.
struct FSDPCommContext {
  /// The first call makes the streams. Roots that share a context (share_comm_ctx) share them.
  void lazy_init(at::Device device);

  AllGatherStreams get_all_gather_streams(bool async_op, TrainingState training_state, at::Device device) const;

  /// Backward may run on several threads at once, one for each kind of device that a model's outputs are on.
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
  int reduce_scatter_max_input_buffers = 1;               ///< The largest that any group asks for.
  /// Of each stream that reduced, the last event: to wait for at the end of backward.
  std::vector<std::pair<Stream, Event>> last_post_reduce_events;
  void set_last_post_reduce_event(const Stream& stream, Event event);
  /// Groups in the order in which their forwards ended, once for each: backward prefetches from its end.
  std::vector<std::weak_ptr<FSDPParamGroup>> post_forward_order;

 private:
  bool initialized_ = false;
};

}  // namespace plimsoll::fsdp
