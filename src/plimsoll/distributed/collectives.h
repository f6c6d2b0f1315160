#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "plimsoll/distributed/process_group.h"

/// Collectives as torch.distributed calls them: a synchronous one has been waited for when it returns (for NCCL: the
/// current stream waits, the host does not), an asynchronous one returns the work to wait for.
///
/// A collective that fails (a rank that died, a timeout, a mismatch) throws c10::DistBackendError with the name of the
/// collective, `what` it was for, the group's ranks and the bytes, and the backend's own words after them.
namespace plimsoll::distributed {

using Work = c10::intrusive_ptr<c10d::Work>;

/// `output` is the inputs of all ranks, one after the other. Returns null unless asynchronous.
Work all_gather_single(at::Tensor output, at::Tensor input, const ProcessGroup& group, bool async_op = false,
                       std::string_view what = {});

/// `output` is this rank's part of the reduced inputs. Returns null unless asynchronous.
Work reduce_scatter_single(at::Tensor output, at::Tensor input, const ProcessGroup& group, const c10d::ReduceOp& op,
                           bool async_op = false, std::string_view what = {});

/// In place. Returns null unless asynchronous.
Work all_reduce(at::Tensor tensor, const ProcessGroup& group, const c10d::ReduceOp& op, bool async_op = false,
                std::string_view what = {});

/// From the group's rank `root` to all. In place, waited for.
void broadcast(at::Tensor tensor, const ProcessGroup& group, int root, std::string_view what = {});

/// Waits for an asynchronous collective, with the same errors.
void wait(const Work& work, const ProcessGroup& group, std::string_view collective, std::string_view what = {});

/// All ranks have come here. On CPU groups the host waits.
void barrier(const ProcessGroup& group, std::string_view what = {});

}  // namespace plimsoll::distributed
