#include "plimsoll/distributed/collectives.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>

namespace plimsoll::distributed {
namespace {

std::string describe(const ProcessGroup& group, std::string_view what, std::int64_t bytes) {
  const auto ranks = known_ranks(group);
  return c10::str(what.empty() ? "" : " for ", what, " on rank ", group->getRank(), " of the group of ",
                  ranks ? describe_ranks(*ranks) : c10::str(group->getSize(), " ranks"),
                  bytes < 0 ? "" : c10::str(" (", bytes, " bytes)"));
}

/// Issues a collective, and waits for it unless it is asynchronous. Adds the context to its errors.
template <class Issue>
Work run(std::string_view collective, const ProcessGroup& group, std::string_view what, std::int64_t bytes,
         bool async_op, Issue issue) {
  TORCH_CHECK_VALUE(group, collective, what.empty() ? "" : " for ", what, ": the process group is null.");
  try {
    Work work = issue();
    if (async_op) return work;
    if (work) work->wait();  // A backend that has already waited may return no work.
    return nullptr;
  } catch (const c10::Error& error) {
    TORCH_CHECK_WITH(DistBackendError, false, collective, describe(group, what, bytes),
                     " failed: ", error.what_without_backtrace());
  } catch (const std::exception& error) {
    TORCH_CHECK_WITH(DistBackendError, false, collective, describe(group, what, bytes), " failed: ", error.what());
  }
}

// Backends check this too, but some end the process.
void check_parts(const ProcessGroup& group, const char* whole_name, const at::Tensor& whole, const char* part_name,
                 const at::Tensor& part) {
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * group->getSize(), "the ", whole_name, " must have ",
                    part.numel() * group->getSize(), " elements, ", group->getSize(), " times the ", part_name, "'s ",
                    part.numel(), ", but has ", whole.numel());
}

std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

}  // namespace

Work all_gather_single(at::Tensor output, at::Tensor input, const ProcessGroup& group, bool async_op,
                       std::string_view what) {
  return run("all_gather_single", group, what, bytes_of(output), async_op, [&] {
    check_parts(group, "output", output, "input", input);
    c10d::AllgatherOptions options;
    options.asyncOp = async_op;
    return group->all_gather_single(output, input, options);
  });
}

Work reduce_scatter_single(at::Tensor output, at::Tensor input, const ProcessGroup& group, const c10d::ReduceOp& op,
                           bool async_op, std::string_view what) {
  return run("reduce_scatter_single", group, what, bytes_of(input), async_op, [&] {
    check_parts(group, "input", input, "output", output);
    c10d::ReduceScatterOptions options;
    options.reduceOp = op;
    options.asyncOp = async_op;
    return group->reduce_scatter_single(output, input, options);
  });
}

Work all_reduce(at::Tensor tensor, const ProcessGroup& group, const c10d::ReduceOp& op, bool async_op,
                std::string_view what) {
  return run("all_reduce", group, what, bytes_of(tensor), async_op, [&] {
    c10d::AllreduceOptions options;
    options.reduceOp = op;
    options.asyncOp = async_op;
    std::vector<at::Tensor> tensors{tensor};
    return group->allreduce(tensors, options);
  });
}

void broadcast(at::Tensor tensor, const ProcessGroup& group, int root, std::string_view what) {
  run("broadcast", group, what, bytes_of(tensor), /*async_op=*/false, [&] {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.asyncOp = false;
    std::vector<at::Tensor> tensors{tensor};
    return group->broadcast(tensors, options);
  });
}

void wait(const Work& work, const ProcessGroup& group, std::string_view collective, std::string_view what) {
  run(collective, group, what, -1, /*async_op=*/false, [&] { return work; });
}

void barrier(const ProcessGroup& group, std::string_view what) {
  run("barrier", group, what, -1, /*async_op=*/false, [&] {
    c10d::BarrierOptions options;
    options.asyncOp = false;
    if (group->getBackendType() == c10d::ProcessGroup::BackendType::NCCL) {
      options.device = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice();
    } else {
      options.device = c10::Device(c10::DeviceType::CPU);
    }
    return group->barrier(options);
  });
}

}  // namespace plimsoll::distributed
