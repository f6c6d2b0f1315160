#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <c10/util/flat_hash_map.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "plimsoll/nn/hooks/hook_list.h"
#include "plimsoll/tracker/tracked_ledger.h"

namespace plimsoll::inline tracker {

/// Parameters that another object names, with their gradients. WatchedTensors names only the optimizer's state for
/// them.
class ManagedParameters {
 public:
  /// The owner; nullopt for a parameter that is not managed.
  virtual std::optional<ledger::OwnerId> owner_of(const at::Tensor& parameter) const = 0;

 protected:
  ~ManagedParameters() = default;
};

/// The parameters and buffers of known modules. Names their memory and the memory of their gradients in the tracked
/// ledger, again if they get other memory. Does not keep a tensor alive.
///
/// Hooks on the parameters name gradients while the tracked ledger tracks. The hooks stay for the life of this object,
/// because torch's list of a tensor's hooks only grows. Thread-safe.
class WatchedTensors : public std::enable_shared_from_this<WatchedTensors> {
 public:
  explicit WatchedTensors(std::shared_ptr<TrackedLedger> tracked) : tracked_(std::move(tracked)) {}
  ~WatchedTensors();
  WatchedTensors(const WatchedTensors&) = delete;
  WatchedTensors& operator=(const WatchedTensors&) = delete;

  /// Leaves `managed` parameters alone from now on, and gives state of optimizers the category `state`. Not owned; null
  /// for none.
  void leave_to(const ManagedParameters* managed, ledger::CategoryId state);
  /// Names and watches the tensors of the module and all below it. A shared tensor belongs to the first module.
  void add(torch::nn::Module& module, const std::string& fqn);
  /// Names tensors again that got other memory (set_data, to), and watches parameters that need gradients by now. Only
  /// tensors that this thread was the last to add: another thread may write to its gradients now.
  void look_again();
  /// The state that an optimizer keeps for a parameter.
  void name_state(const at::Tensor& parameter, const at::Tensor& state);
  std::size_t size() const;

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  struct Watched {
    WeakTensor tensor;
    const torch::nn::Module* module = nullptr;
    ledger::CategoryId category{};
    ledger::OwnerId owner{};
    std::uint64_t allocation = 0;  ///< The latest that was named; 0 for none.
    std::vector<nn::HookHandle> handles = {};
    std::thread::id thread = {};  ///< The last thread that added it: the thread of its model.
  };

  /// A copy of the table's entry for a tensor.
  struct Seen {
    at::Tensor tensor;
    ledger::CategoryId category{};
    ledger::OwnerId owner{};
    std::uint64_t allocation = 0;
    bool hooked = false;
  };

  /// A state that was named, and the tensors that held its memory then. To find the tensors in a Python wrapper is the
  /// largest cost of a state, and each step asks for each state.
  struct NamedState {
    struct Holder {
      WeakTensor tensor;
      std::uint64_t allocation = 0;
    };
    WeakTensor tensor;
    c10::SmallVector<Holder, 1> holders;
  };

  bool has_name(const NamedState& known, ledger::CategoryId category, std::optional<ledger::OwnerId> owner) const;
  void add_own(torch::nn::Module& module, const std::string& fqn);
  void watch(const at::Tensor& tensor, ledger::CategoryId category, const torch::nn::Module& module,
             ledger::OwnerId owner);
  void name(const Seen& seen);
  std::vector<nn::HookHandle> hook_gradients(const at::Tensor& parameter);
  void name_gradient(c10::TensorImpl* parameter, const at::Tensor& gradient);

  const std::shared_ptr<TrackedLedger> tracked_;
  mutable std::mutex mutex_;  ///< Before all locks of the tracked ledger.
  std::unordered_map<c10::TensorImpl*, Watched> watched_;
  ska::flat_hash_map<c10::TensorImpl*, NamedState> named_states_;
  const ManagedParameters* managed_ = nullptr;
  ledger::CategoryId state_category_ = ledger::categories::kOptstate;
};

}  // namespace plimsoll::inline tracker
