#include "plimsoll/nn/checkpoint/selective_checkpoint.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "plimsoll/nn/dispatch_mode.h"

namespace plimsoll::nn {
namespace {

// Checkpointing itself calls detach, with different counts in the two runs.
bool is_ignored(const c10::OperatorHandle& op) {
  static const c10::OperatorHandle detach = c10::Dispatcher::singleton().findSchemaOrThrow("aten::detach", "");
  return op == detach;
}

// A handle to the tensor without autograd's data, with the same version counter.
at::Tensor without_autograd(const at::Tensor& tensor) {
  constexpr c10::DispatchKey kKey = c10::DispatchKey::ADInplaceOrView;
  struct Restored {
    bool excluded = c10::impl::tls_is_dispatch_key_excluded(kKey);
    ~Restored() { c10::impl::tls_set_dispatch_key_excluded(kKey, excluded); }
  };
  const Restored restored;
  c10::impl::tls_set_dispatch_key_excluded(kKey, false);
  return tensor.detach();
}

template <class Function>
c10::IValue map_tensors(const c10::IValue& value, const Function& function) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() ? c10::IValue(function(tensor)) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> mapped;
    for (const at::Tensor& tensor : value.toTensorVector())
      mapped.push_back(tensor.defined() ? function(tensor) : tensor);
    return mapped;
  }
  return value;
}

// The kept results of one call.
class KeptResults {
 public:
  explicit KeptResults(c10::ArrayRef<c10::IValue> results) {
    for (const c10::IValue& result : results) {
      results_.push_back(map_tensors(result, [this](const at::Tensor& tensor) {
        at::Tensor kept = without_autograd(tensor);
        versions_.push_back(kept._version());
        return kept;
      }));
    }
  }

  std::vector<c10::IValue> take(const c10::OperatorHandle& op, bool allow_mutation) && {
    auto version = versions_.begin();
    for (const c10::IValue& result : results_) {
      map_tensors(result, [&](const at::Tensor& tensor) {
        const auto expected = *version++;
        TORCH_CHECK(allow_mutation || tensor._version() == expected, "A result of ", op.operator_name(),
                    " kept by a selective checkpoint was changed in place between forward and backward (version ",
                    tensor._version(), ", expected ", expected,
                    "). Recompute the operator, or set allow_cache_entry_mutation if the change is intended.");
        return tensor;
      });
    }
    return std::move(results_);
  }

 private:
  std::vector<c10::IValue> results_;
  std::vector<std::int64_t> versions_;
};

struct Recompute {};
struct Consumed {};
using Call = std::variant<Recompute, Consumed, KeptResults>;

// The calls of a checkpoint's first run, by operator, in order.
using Calls = std::unordered_map<c10::OperatorHandle, std::vector<Call>>;

class RecordingMode final : public DispatchMode {
 public:
  RecordingMode(std::shared_ptr<Calls> calls, CheckpointPolicyFunction policy)
      : calls_(std::move(calls)), policy_(std::move(policy)) {}

  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
    op.callBoxed(&stack);
    if (is_ignored(op)) return;
    const CheckpointPolicy policy = policy_(op, /*is_recompute=*/false);
    auto& calls = (*calls_)[op];
    if (policy == CheckpointPolicy::kMustSave || policy == CheckpointPolicy::kPreferSave) {
      calls.emplace_back(KeptResults(torch::jit::last(stack, op.schema().returns().size())));
    } else {
      calls.emplace_back(Recompute());
    }
  }

 private:
  std::shared_ptr<Calls> calls_;
  CheckpointPolicyFunction policy_;
};

class ReplayingMode final : public DispatchMode {
 public:
  ReplayingMode(std::shared_ptr<Calls> calls, SelectiveCheckpointOptions options)
      : calls_(std::move(calls)), options_(options) {}

  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
    if (is_ignored(op)) {
      op.callBoxed(&stack);
      return;
    }
    const std::size_t index = counts_[op]++;
    const auto found = calls_->find(op);
    const std::size_t known = found == calls_->end() ? 0 : found->second.size();
    TORCH_CHECK(index < known, "Recomputation of a selective checkpoint called ", op.operator_name(), " ", index + 1,
                " times, but the first run ", known, " times. The function must do the same each time.");
    Call& call = found->second[index];
    TORCH_CHECK(!std::holds_alternative<Consumed>(call),
                "A second backward pass reached a selective checkpoint, which returns "
                "each kept result only once (here that of ",
                op.operator_name(), "). Use checkpoint without a policy if the graph is retained.");
    if (std::holds_alternative<Recompute>(call)) {
      op.callBoxed(&stack);
      return;
    }
    KeptResults kept = std::get<KeptResults>(std::exchange(call, Consumed()));
    auto results = std::move(kept).take(op, options_.allow_cache_entry_mutation);
    torch::jit::drop(stack, op.schema().arguments().size());
    for (c10::IValue& result : results) stack.push_back(std::move(result));
  }

 private:
  std::shared_ptr<Calls> calls_;
  SelectiveCheckpointOptions options_;
  std::unordered_map<c10::OperatorHandle, std::size_t> counts_;
};

template <class Mode>
struct ModeAndScope {
  template <class... Arguments>
  explicit ModeAndScope(Arguments... arguments)
      : mode(std::move(arguments)...), scope(ModeLevel::kBelowAutograd, mode) {}
  Mode mode;
  DispatchModeScope scope;
};

}  // namespace

CheckpointContexts create_selective_checkpoint_contexts(CheckpointPolicyFunction policy,
                                                        SelectiveCheckpointOptions options) {
  const auto calls = std::make_shared<Calls>();
  return {
      .forward = [calls,
                  policy = std::move(policy)] { return std::make_shared<ModeAndScope<RecordingMode>>(calls, policy); },
      .recompute = [calls, options] { return std::make_shared<ModeAndScope<ReplayingMode>>(calls, options); },
  };
}

CheckpointPolicyFunction save_operators(const std::vector<std::string>& names) {
  std::unordered_set<c10::OperatorHandle> saved;
  for (const std::string& name : names) {
    const std::size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto op = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
    TORCH_CHECK(op, "Expected the name of an operator of torch, such as 'aten::mm' or 'aten::add.Tensor', found '",
                name, "'. A name without '.overload' means the overload without a name.");
    saved.insert(*op);
  }
  return [saved = std::move(saved)](const c10::OperatorHandle& op, bool) {
    return saved.contains(op) ? CheckpointPolicy::kMustSave : CheckpointPolicy::kPreferRecompute;
  };
}

}  // namespace plimsoll::nn
