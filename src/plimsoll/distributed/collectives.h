#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "plimsoll/distributed/process_group.h"

/// Collectives like those of torch.distributed. A synchronous one has been waited for when it returns (for NCCL: the
/// current stream waits, the host does not). An asynchronous one returns the work to wait for.
///
/// A collective that fails (a dead rank, a timeout, a mismatch) throws c10::DistBackendError. The message has the name
/// of the collective, its purpose (`what`), the group's ranks and the bytes, then the backend's own text.
namespace plimsoll::distributed {

using Work = c10::intrusive_ptr<c10d::Work>;

/// `output` receives the inputs of all ranks, one after the other. Returns null unless asynchronous.
Work all_gather_single(at::Tensor output, at::Tensor input, const ProcessGroup& group, bool async_op = false,
                       std::string_view what = {});

/// `output` receives this rank's part of the reduced inputs. Returns null unless asynchronous.
Work reduce_scatter_single(at::Tensor output, at::Tensor input, const ProcessGroup& group, const c10d::ReduceOp& op,
                           bool async_op = false, std::string_view what = {});

/// In place. Returns null unless asynchronous.
Work all_reduce(at::Tensor tensor, const ProcessGroup& group, const c10d::ReduceOp& op, bool async_op = false,
                std::string_view what = {});

/// From the group's rank `root` to all. In place, synchronous.
void broadcast(at::Tensor tensor, const ProcessGroup& group, int root, std::string_view what = {});

/// Waits for an asynchronous collective, with the same errors.
void wait(const Work& work, const ProcessGroup& group, std::string_view collective, std::string_view what = {});

/// Waits until all ranks have called it. On CPU groups the host waits.
void barrier(const ProcessGroup& group, std::string_view what = {});

}  // namespace plimsoll::distributed
