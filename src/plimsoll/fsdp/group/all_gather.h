#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>
#include <vector>

#include "plimsoll/fsdp/group/comm.h"
#include "plimsoll/fsdp/group/streams.h"
#include "plimsoll/fsdp/param/fsdp_param.h"

namespace plimsoll::fsdp {

using FSDPParams = std::vector<std::unique_ptr<FSDPParam>>;

/// A pending all-gather. It keeps the buffer alive until the copy-out is issued.
struct AllGatherResult {
  at::Tensor all_gather_output;
  Event all_gather_event;
  distributed::Work all_gather_work;         ///< Null unless asynchronous.
  std::vector<at::ScalarType> input_dtypes;  ///< One for each parameter.
  std::vector<std::int64_t> input_numels;
  std::vector<std::int64_t> input_split_sizes;  ///< In elements of the buffer.
};

struct AllGatherStreams {
  Stream copy_in;
  Stream all_gather;
};

/// Copies the parameters' shards into one buffer, on the copy-in stream, and gathers the buffers of all ranks, on the
/// all-gather stream. Mirrors foreach_all_gather (torch 2.13).
AllGatherResult foreach_all_gather(const FSDPParams& params, const ProcessGroup& group, bool async_op,
                                   const AllGatherStreams& streams, at::Device device, AllGather& comm,
                                   std::string_view what);

/// Makes the current stream wait for the all-gather, allocates the whole parameters and fills them. Mirrors
/// foreach_all_gather_copy_out (torch 2.13).
void foreach_all_gather_copy_out(const AllGatherResult& result, const FSDPParams& params, const ProcessGroup& group,
                                 std::string_view what);

}  // namespace plimsoll::fsdp
