#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "plimsoll/distributed/backend.h"

// torch's FakeProcessGroup has the same results, but its header needs Python's, and it copies once per rank, which is
// slow for a large world.

namespace plimsoll::distributed {
namespace {

class DoneWork final : public c10d::Work {
 public:
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
    future->markCompleted();
    return future;
  }
};

class FakeBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Work = c10::intrusive_ptr<c10d::Work>;
  using c10d::Backend::Backend;

  const std::string getBackendName() const override { return "fake"; }
  void shutdown() override {}
  void abort() override {}

  // Each other rank is assumed to have the same input as this one.
  Work _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) override {
    const at::NoGradGuard no_grad;
    if (input.numel() > 0) {
      // A row of the output may be the input itself; a single copy refuses to read and write the same memory.
      const at::Tensor rows = output.view({getSize(), input.numel()}), row = input.reshape({1, input.numel()});
      rows.narrow(0, 0, getRank()).copy_(row);
      rows.narrow(0, getRank(), 1).copy_(row);
      rows.narrow(0, getRank() + 1, getSize() - getRank() - 1).copy_(row);
    }
    return done();
  }

  // Does not add the inputs of other ranks.
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions&) override {
    const at::NoGradGuard no_grad;
    if (output.numel() > 0) {
      output.view({output.numel()}).copy_(input.view({getSize(), output.numel()}).select(0, getRank()));
    }
    return done();
  }

  Work allreduce(Tensors&, const c10d::AllreduceOptions&) override { return done(); }
  Work broadcast(Tensors&, const c10d::BroadcastOptions&) override { return done(); }
  Work barrier(const c10d::BarrierOptions&) override { return done(); }

 private:
  static Work done() { return c10::make_intrusive<DoneWork>(); }
};

}  // namespace

Backend make_fake(const BackendRequest& request) {
  return c10::make_intrusive<FakeBackend>(request.rank, request.size);
}

}  // namespace plimsoll::distributed
