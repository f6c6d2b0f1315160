#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/DimVector.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/thread_scope.h"
#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/listener.h"
#include "plimsoll/ledger/ledger.h"

namespace plimsoll::inline tracker {

/// Classifies memory at its allocation, if it knows more than the hooks do.
class AllocationClassifier {
 public:
  struct Class {
    ledger::CategoryId category{};
    ledger::OwnerId owner{};
  };
  /// The class of memory that this thread allocates on the device now; nullopt if unknown. Called with the tracked
  /// ledger's lock held.
  virtual std::optional<Class> classify(c10::Device device) const noexcept = 0;

 protected:
  ~AllocationClassifier() = default;
};

/// While it lives, memory that this thread allocates is a bucket in which DistributedDataParallel reduces gradients. It
/// is Gradient from its first instant: code outside of torch cannot name it later.
class GradientBuckets : public ThreadScope<GradientBuckets> {};

/// The shape of a tensor when the tracker saw it: the ledger knows only bytes.
struct Description {
  c10::DimVector sizes;
  at::ScalarType dtype{};
  /// The latest class of its memory, which it may have got after the instant in question.
  std::optional<AllocationClassifier::Class> named = std::nullopt;
};

/// The ledger of a tracker, which capture feeds. Gives each allocation its first category from the activity of its
/// thread. Keeps facts that the ledger has no place for: which storages were named, and the shapes of tensors.
///
/// Thread-safe. Lock order: allocator, capture's registry, this. So nothing here calls capture with the lock held.
class TrackedLedger final : public capture::Listener {
 public:
  explicit TrackedLedger(const ledger::Ledger::Options& options, ledger::Log* log);
  ~TrackedLedger();

  /// Calls `use(ledger)` with the lock held. REQUIRES: refresh() came before, if `use` reads bytes.
  template <class Use>
  auto with_ledger(Use&& use) {
    std::lock_guard lock(mutex_);
    return use(ledger_);
  }

  // --- From capture.

  void allocated(const capture::Allocation& allocation) noexcept override;
  void freed(ledger::AllocationId id) noexcept override;
  void resized(ledger::AllocationId id, Bytes bytes) noexcept override;
  void segment(c10::Device device, std::int64_t delta) noexcept override;
  void defect(const char* what) noexcept override;

  // --- The activity of the training.

  /// Outside of tracking new memory is Other, unless the classifier knows more. The call also ends all steps of
  /// optimizers.
  void set_tracking(bool tracking);
  bool tracking() const { return tracking_.load(std::memory_order_relaxed); }
  /// While preparing, memory from outside of modules, backward passes and steps is Other: no forward pass makes it.
  void set_preparing(bool preparing) {
    with_ledger([&](auto&) { preparing_ = preparing; });
  }
  /// Asks this classifier from now on; null for none. Not owned.
  void set_classifier(const AllocationClassifier* classifier) {
    with_ledger([&](auto&) { classifier_ = classifier; });
  }
  /// The category of an optimizer's state at its creation; by default Optstate.
  void set_state_category(ledger::CategoryId category) {
    with_ledger([&](auto&) { state_category_ = category; });
  }
  /// During a step of an optimizer new memory is Temp of this owner until it is named, except in the forward pass of a
  /// closure. Steps nest.
  void step_entered(std::string_view owner);
  void step_left();

  // --- Naming.

  /// Gives the memory of a tensor, if it has any, a category and an owner, which stay if its storage is resized.
  /// Without `owner` the memory keeps its owner.
  void name_tensor(const at::Tensor& tensor, ledger::CategoryId category,
                   std::optional<ledger::OwnerId> owner = std::nullopt);
  /// Whether the allocation has this category and, if given, this owner.
  bool is_named(ledger::AllocationId id, ledger::CategoryId category, std::optional<ledger::OwnerId> owner) const;
  /// Gives the memory a category of the user's, which the functions above do not change. Returns false without memory.
  bool name_for_user(const at::Tensor& tensor, std::string_view category);
  /// Notes the tensor's shape for its memory. Returns its bytes.
  std::int64_t describe(const at::Tensor& tensor);
  ledger::OwnerId owner(std::string_view path) {
    return with_ledger([&](auto& ledger) { return ledger.owner(path); });
  }
  ledger::CategoryId category(std::string_view name) {
    return with_ledger([&](auto& ledger) { return ledger.category(name); });
  }

  // --- Looking.

  /// Makes the bytes exact, and names memory that no hook saw: workspaces, resized storages. Call it before each read.
  void refresh();

  /// As with_ledger, with exact bytes. Throws a stored defect.
  template <class Use>
  auto look(Use&& use) {
    refresh();
    throw_defect();
    return with_ledger(std::forward<Use>(use));
  }

  /// REQUIRES: within with_ledger.
  const Description* description(ledger::AllocationId id) const;
  /// The latest class of the allocation, which it may have got after the instant in question.
  std::optional<AllocationClassifier::Class> named_since(ledger::AllocationId id) const;
  /// Forgets, now and then, shapes of memory that neither lives nor is in one of the run's peaks. REQUIRES: within
  /// with_ledger.
  void prune_descriptions();

  /// The number of names and descriptions. REQUIRES: within with_ledger.
  std::size_t entries() const { return named_.size() + homeless_.size() + descriptions_.size(); }

  /// Throws the first defect that was stored in a place that must not throw.
  void throw_defect();

 private:
  struct Named {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    ledger::CategoryId category{};
    ledger::OwnerId owner{};
    bool by_user = false;
  };

  ledger::DeviceId device_id(c10::Device device);
  void follow_phase(bool backward, bool in_optimizer) noexcept;
  void name_found(const at::Tensor& tensor, ledger::AllocationId id, ledger::CategoryId category,
                  std::optional<ledger::OwnerId> owner, bool by_user);
  void name_resized();
  void name_workspaces();

  mutable std::mutex mutex_;
  ledger::Ledger ledger_;
  std::vector<std::pair<c10::Device, ledger::DeviceId>> devices_;
  const AllocationClassifier* classifier_ = nullptr;
  ledger::CategoryId state_category_ = ledger::categories::kOptstate;
  std::atomic<bool> tracking_{false};
  bool preparing_ = false;
  std::vector<ledger::OwnerId> optimizers_;  ///< In a step now, the outermost first.
  ska::flat_hash_map<std::uint64_t, Named> named_;
  std::vector<Named> homeless_;  ///< Named storages that were resized, to zero bytes or to other memory.
  std::atomic<bool> has_homeless_{false};
  ska::flat_hash_map<std::uint64_t, Description> descriptions_;
  std::atomic<std::uint64_t> workspaces_version_{0};
  const char* defect_ = nullptr;
  std::optional<capture::Subscription> subscription_;
};

}  // namespace plimsoll::inline tracker
