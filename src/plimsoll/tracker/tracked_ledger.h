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

#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/listener.h"
#include "plimsoll/ledger/ledger.h"

namespace plimsoll {

/// Says what memory is for as it is allocated, where it knows better than the hooks do.
class AllocationClassifier {
 public:
  struct Class {
    ledger::CategoryId category{};
    ledger::OwnerId owner{};
  };
  /// Of what this thread allocates on the device now; nothing where it does not know. Called with the tracked ledger's lock held.
  virtual std::optional<Class> classify(c10::Device device) const noexcept = 0;

 protected:
  ~AllocationClassifier() = default;
};

/// What a tensor looked like when it was seen: the ledger knows bytes alone.
struct Description {
  c10::DimVector sizes;
  at::ScalarType dtype{};
  /// What its memory was named as last, which may have been after the instant in question.
  std::optional<AllocationClassifier::Class> named = std::nullopt;
};

/// The ledger of a tracker, fed by capture: gives each allocation its first category from what its thread is doing, and
/// keeps what the ledger does not know (which storages were named, what tensors looked like).
///
/// Thread-safe. Lock order: allocator, capture's registry, this. So nothing here calls capture with the lock held.
class TrackedLedger final : public capture::Listener {
 public:
  explicit TrackedLedger(const ledger::Ledger::Options& options, ledger::Log* log);
  ~TrackedLedger();

  // --- From capture.

  void allocated(const capture::Allocation& allocation) noexcept override;
  void freed(ledger::AllocationId id) noexcept override;
  void resized(ledger::AllocationId id, Bytes bytes) noexcept override;
  void segment(c10::Device device, std::int64_t delta) noexcept override;
  void defect(const char* what) noexcept override;

  // --- What is going on.

  /// Outside, what is allocated is Other, unless the classifier knows better. Either way no step of an optimizer is
  /// under way.
  void set_tracking(bool tracking);
  bool tracking() const { return tracking_.load(std::memory_order_relaxed); }
  /// Meanwhile what is allocated outside of modules, backward passes and steps is Other: no forward pass makes it.
  void set_preparing(bool preparing);
  /// The classifier is asked from now on, until another one (or none) is set. Not owned.
  void set_classifier(const AllocationClassifier* classifier);
  /// What state of an optimizer is called that is being created. Optstate, unless told.
  void set_state_category(ledger::CategoryId category);
  /// During a step of an optimizer new memory is Temp, of that owner, until it is named; not so in the forward pass of
  /// a closure. Steps nest.
  void step_entered(std::string_view owner);
  void step_left();

  // --- Naming.

  /// The memory behind a tensor is of that category and owner from now on, also when its storage is resized. Returns
  /// its bytes; 0 for a tensor without memory of an allocator's.
  std::int64_t name_tensor(const at::Tensor& tensor, ledger::CategoryId category, ledger::OwnerId owner);
  /// The same, keeping the owner it has.
  std::int64_t name_tensor(const at::Tensor& tensor, ledger::CategoryId category);
  /// Whether that is how it stands in the books; of whichever owner, without one.
  bool is_named(ledger::AllocationId id, ledger::CategoryId category, std::optional<ledger::OwnerId> owner) const;
  /// Gives it a category of the user's own, which the functions above do not change. Returns whether it has memory.
  bool name_for_user(const at::Tensor& tensor, std::string_view category);
  /// Its memory is known by this shape from now on. Returns its bytes.
  std::int64_t describe(const at::Tensor& tensor);
  ledger::OwnerId owner(std::string_view path);
  ledger::CategoryId category(std::string_view name);

  // --- Looking.

  /// Makes the books true to the byte, and names what came to be unseen: workspaces, resized storages. Before every
  /// look.
  void refresh();

  /// Calls `use(ledger)` with the lock held. REQUIRES: refresh() came before, where bytes are looked at.
  template <class Use>
  auto with_ledger(Use&& use) {
    std::lock_guard lock(mutex_);
    return use(ledger_);
  }

  /// REQUIRES: within with_ledger.
  const Description* description(ledger::AllocationId id) const;
  /// What it was named as last, which may have been after the instant in question.
  std::optional<AllocationClassifier::Class> named_since(ledger::AllocationId id) const;
  /// Forgets, now and then, descriptions of what neither lives nor stands in the run's peaks. REQUIRES: within
  /// with_ledger.
  void prune_descriptions();

  /// How many names and descriptions are kept. REQUIRES: within with_ledger.
  std::size_t entries() const { return named_.size() + homeless_.size() + descriptions_.size(); }

  /// Throws what was noted where throwing was not allowed.
  void throw_defect();

 private:
  struct Named {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    ledger::CategoryId category{};
    ledger::OwnerId owner{};
    bool by_user = false;
  };

  ledger::DeviceId device_id(c10::Device device);
  std::int64_t name_holders(const at::Tensor& tensor, ledger::CategoryId category,
                            std::optional<ledger::OwnerId> owner);
  void follow_phase(bool backward, bool in_optimizer) noexcept;
  std::int64_t name_found(const at::Tensor& tensor, const capture::Registry::Found& found, ledger::CategoryId category,
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
  std::vector<ledger::OwnerId> optimizers_;  ///< Whose steps are under way, the outermost first.
  ska::flat_hash_map<std::uint64_t, Named> named_;
  std::vector<Named> homeless_;  ///< Named storages whose memory was freed: resized, to nothing or to other memory.
  std::atomic<bool> has_homeless_{false};
  ska::flat_hash_map<std::uint64_t, Description> descriptions_;
  std::atomic<std::uint64_t> workspaces_version_{0};
  const char* defect_ = nullptr;
  std::optional<capture::Subscription> subscription_;
};

}  // namespace plimsoll
