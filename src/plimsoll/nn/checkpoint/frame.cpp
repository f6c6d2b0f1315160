#include "plimsoll/nn/checkpoint/frame.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <exception>
#include <sstream>
#include <utility>

#include "plimsoll/nn/checkpoint/selective_checkpoint.h"
#include "plimsoll/nn/device_scope.h"

namespace plimsoll::nn::detail {
namespace {

using torch::autograd::SavedVariableHooks;

// Ends a recomputation that has all needed tensors. Not a std::exception, so that the function's own handlers do not
// catch it.
struct StopRecomputation {};

class HeldTensor final : public SavedVariableHooks {
 public:
  explicit HeldTensor(std::shared_ptr<CheckpointFrame> frame) : frame_(std::move(frame)) {}
  void call_pack_hook(const at::Tensor& tensor) override { holder_ = frame_->hold(tensor); }
  at::Tensor call_unpack_hook() override { return frame_->take(*holder_); }

 private:
  std::shared_ptr<CheckpointFrame> frame_;
  std::shared_ptr<CheckpointFrame::Holder> holder_;
};

// Recomputation makes a graph and drops it. While the graph lives it needs its tensors, because the function may call
// backward itself.
class RecomputedTensor final : public SavedVariableHooks {
 public:
  RecomputedTensor(CheckpointFrame& frame, std::int64_t pass) : frame_(frame), pass_(pass) {}
  void call_pack_hook(const at::Tensor& tensor) override { tensor_ = frame_.recomputed(pass_, tensor); }
  at::Tensor call_unpack_hook() override { return tensor_; }

 private:
  CheckpointFrame& frame_;  // Used only while the frame runs its recomputation.
  std::int64_t pass_;
  at::Tensor tensor_;
};

// The number of the backward pass on this thread; a new number outside of a pass.
std::int64_t current_pass() {
  static std::atomic<std::int64_t> outside{-1};
  const int pass = torch::autograd::get_current_graph_task_id();
  return pass == -1 ? outside.fetch_sub(1) : pass;
}

CheckpointContexts contexts_of(const CheckpointOptions& options) {
  TORCH_CHECK(!options.context_fn || !options.policy,
              "Expected a checkpoint with either context_fn or policy, found both. Open the scopes of the policy in "
              "context_fn: create_selective_checkpoint_contexts(policy).");
  if (options.policy) return create_selective_checkpoint_contexts(options.policy);
  return options.context_fn ? options.context_fn() : CheckpointContexts();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw CheckpointError({__func__, __FILE__, __LINE__}, c10::str(parts...));
}

std::shared_ptr<void> open(const ScopeFunction& scope) { return scope ? scope() : nullptr; }

}  // namespace

CheckpointFrame::Metadata::Metadata(const at::Tensor& tensor)
    : shape(tensor.sizes().begin(), tensor.sizes().end()), dtype(tensor.scalar_type()), device(tensor.device()) {}

std::string CheckpointFrame::Metadata::text() const {
  std::ostringstream text;
  text << c10::IntArrayRef(shape) << " " << dtype << " on " << device;
  return text.str();
}

CheckpointFrame::CheckpointFrame(const CheckpointOptions& options, const std::vector<at::Tensor>& arguments)
    : early_stop_(options.early_stop),
      determinism_check_(options.determinism_check),
      contexts_(contexts_of(options)),
      environment_(options.preserve_rng_state, arguments) {}

std::size_t CheckpointFrame::save_input(const at::Tensor& tensor) {
  inputs_.emplace_back(tensor, /*is_output=*/false);
  return inputs_.size() - 1;
}

CheckpointFrame::Forward::Forward(std::shared_ptr<CheckpointFrame> frame)
    : frame_(std::move(frame)),
      hooks_([frame = frame_] { return std::make_unique<HeldTensor>(frame); }),
      context_(open(frame_->contexts_.forward)),
      exceptions_(std::uncaught_exceptions()) {}

CheckpointFrame::Forward::~Forward() {
  if (std::uncaught_exceptions() == exceptions_) frame_->forward_completed_ = true;
  context_.reset();
  frame_->contexts_.forward = nullptr;
}

std::shared_ptr<CheckpointFrame::Holder> CheckpointFrame::hold(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  auto holder = std::make_shared<Holder>();
  holders_.push_back(holder);
  if (determinism_check_) metadata_.emplace_back(tensor);
  return holder;
}

at::Tensor CheckpointFrame::take(Holder& holder) {
  const auto alive = shared_from_this();
  const std::lock_guard lock(mutex_);
  const std::int64_t pass = current_pass();
  std::vector<at::Tensor> inputs;  // They live until the tensor is taken, as in Python.
  if (!passes_[pass].done) {
    for (const auto& input : inputs_) inputs.push_back(input.unpack());
    try {
      recompute(pass, inputs);
    } catch (const StopRecomputation&) {
    }
    passes_[pass].done = true;
    check_recomputed(pass);
  }
  const auto found = holder.recomputed.find(pass);
  TORCH_INTERNAL_ASSERT(found != holder.recomputed.end());
  if (!found->second.defined()) {
    fail(
        "A tensor saved in a checkpoint was unpacked twice in one backward pass. Unpack saved variables only once in "
        "a "
        "backward function.");
  }
  return std::exchange(found->second, at::Tensor());
}

void CheckpointFrame::recompute(std::int64_t pass, const std::vector<at::Tensor>& inputs) {
  const SavedTensorHooks hooks([this, pass] { return std::make_unique<RecomputedTensor>(*this, pass); });
  const at::AutoGradMode with_gradients(true);
  const RecomputationScope scope;
  const RestoredEnvironment environment(environment_);
  const std::shared_ptr<void> context = open(contexts_.recompute);
  std::optional<DeviceScope> device;
  if (environment_.device_scope) device.emplace(*environment_.device_scope);
  recompute_(inputs);
}

at::Tensor CheckpointFrame::recomputed(std::int64_t pass, const at::Tensor& tensor) {
  const at::Tensor kept = tensor.requires_grad() ? tensor.detach() : tensor;
  const std::lock_guard lock(mutex_);
  const std::size_t index = passes_[pass].saved++;
  if (index >= holders_.size()) {
    if (!forward_completed_) {
      // The function calls backward itself before it has saved all tensors: tensors that it saves later have no holder.
      ignore_saved_mismatch_ = true;
      return kept;
    }
    fail("Recomputation of a checkpoint saved more tensors for backward than the ", holders_.size(),
         " of the first run. The function must do the same each time.");
  }
  if (const auto holder = holders_[index].lock()) holder->recomputed[pass] = kept;
  if (early_stop_ && index + 1 == holders_.size()) throw StopRecomputation();
  return kept;
}

void CheckpointFrame::check_recomputed(std::int64_t pass) const {
  if (ignore_saved_mismatch_) return;
  const std::size_t saved = passes_.at(pass).saved;
  if (saved != holders_.size()) {
    fail("Recomputation of a checkpoint saved ", saved, " tensors for backward, the first run ", holders_.size(),
         ". The function must do the same each time.");
  }
  if (!determinism_check_) return;
  std::ostringstream differences;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    const auto holder = holders_[i].lock();
    if (!holder) continue;
    const Metadata found(holder->recomputed.at(pass));
    if (!(found == metadata_[i])) {
      differences << "\n  tensor " << i << ": " << metadata_[i].text() << " first, " << found.text() << " recomputed";
    }
  }
  if (differences.tellp() != 0) {
    fail(
        "Recomputation of a checkpoint made different tensors than the first run. The function must do the same each "
        "time.",
        differences.str());
  }
}

}  // namespace plimsoll::nn::detail
