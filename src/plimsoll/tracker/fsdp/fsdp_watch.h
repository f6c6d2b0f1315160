#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/tracker/explain/explain.h"
#include "plimsoll/tracker/explain/stage_log.h"
#include "plimsoll/tracker/fsdp/fsdp_runtime.h"
#include "plimsoll/tracker/mem_tracker_impl.h"
#include "plimsoll/tracker/module_records.h"
#include "plimsoll/tracker/module_tracker.h"
#include "plimsoll/tracker/tracked_ledger.h"
#include "plimsoll/tracker/watched_tensors.h"

namespace plimsoll::inline tracker {

/// Brings the events of an FSDP runtime into a tracker: memory gets its category and owner at its allocation, and each
/// stage gets its snapshot. Lives as long as the tracker.
class FSDPWatch final : public FSDPRuntime::Listener,
                        public AllocationClassifier,
                        public ManagedParameters,
                        public TrackerExtension {
 public:
  using Key = FSDPRuntime::Key;

  FSDPWatch(std::unique_ptr<FSDPRuntime> runtime, TrackedLedger& tracked, WatchedTensors& tensors,
            ModuleTracker& modules);
  ~FSDPWatch();

  /// Follows the FSDP modules below `root`, now and at each enter(). Throws if `root` is not an FSDP module.
  void add_root(torch::nn::Module& root);

  /// Follows the FSDP modules of now, and names their memory.
  void look_again() override;
  /// If a root has got another name, as a part of a larger module, renames all.
  void before_step() override;
  void after_recomputed_forward(torch::nn::Module& module) override;
  void after_step() override;

  /// The device of the first root; nullopt without a root.
  std::optional<at::Device> device() const { return device_; }
  ledger::CategoryId inputs_category() const { return inputs_category_; }

  // --- REQUIRES: within tracked.with_ledger.
  FSDPRecords records;
  Explanation explain(const ledger::Peak& peak, const ledger::Ledger& ledger, const OwnerNames& names) const override;
  const ledger::RetainedPeak& first_state_peak() const { return first_state_peak_; }
  std::size_t entries() const override { return records.entries() + log_.entries(); }

  // --- From the runtime and the tracked ledger.
  void state_in(fsdp::Stage stage, Key state) noexcept override;
  void group_in(fsdp::Stage stage, Key group) noexcept override;
  void memory(fsdp::MemoryUse use, const at::Tensor& tensor, Key group) noexcept override;
  std::optional<Class> classify(c10::Device device) const noexcept override;
  std::optional<ledger::OwnerId> owner_of(const at::Tensor& parameter) const override;

 private:
  struct Root {
    std::weak_ptr<torch::nn::Module> module;
    torch::nn::Module* address = nullptr;
    std::string name;
  };
  /// A state, or a group of parameters.
  struct Followed {
    FSDPRuntime::Life life;
    Key state = nullptr;      ///< Itself, or the state of the group.
    std::vector<Key> groups;  ///< The groups of the state, or the group itself.
    ledger::OwnerId owner{};
  };

  void follow_all();
  void follow(torch::nn::Module& module);
  void name(const at::Tensor& tensor, fsdp::MemoryUse use, ledger::OwnerId owner);
  /// Null for a key that is not followed. REQUIRES: mutex_ is held.
  const Followed* find(Key key) const;
  std::optional<Followed> followed(Key key) const;
  ledger::OwnerId owner_of_group(Key group) const;
  void stage_begins(fsdp::Stage stage, Key key, bool recomputing);
  void take_snapshot(Key state, FSDPModState of);
  void log_stage(ledger::OwnerId owner, fsdp::Stage stage, bool recomputed);
  void forget_steps(const ledger::Ledger& ledger);

  const std::unique_ptr<FSDPRuntime> runtime_;
  std::vector<Root> roots_;
  std::optional<at::Device> device_;
  TrackedLedger& tracked_;
  WatchedTensors& tensors_;
  ModuleTracker& modules_;
  std::array<ledger::CategoryId, fsdp::kMemoryUses> categories_;
  ledger::CategoryId inputs_category_{}, state_category_{};

  mutable std::mutex mutex_;  ///< Guards the next one. After the tracked ledger's lock. No call is made with it held.
  std::unordered_map<Key, Followed> followed_;

  // Guarded by the tracked ledger's lock.
  FSDPMembers members_;
  StageLog log_;
  ledger::Step last_step_ = ledger::kNoStep;
  bool had_state_ = false;
  ledger::RetainedPeak first_state_peak_;
};

}  // namespace plimsoll::inline tracker
