#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plimsoll::nn {

/// Owner of hooks that a handle can remove.
class HookOwner {
 public:
  virtual ~HookOwner() = default;

  /// Removes the hook. Ignores an unknown or removed id.
  virtual void remove_hook(std::uint64_t id) noexcept = 0;
};

/// The handle of a registered hook, to remove it. The handle owns nothing: if it is dropped, the hook stays. It may
/// outlive the hook's owner. Copies refer to the same hook; the second removal does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<HookOwner> owner, std::uint64_t id) : owner_(std::move(owner)), id_(id) {}

  /// Removes the hook. Safe inside a running hook: the other hooks of the current call still run.
  void remove() noexcept {
    if (const auto owner = owner_.lock()) owner->remove_hook(id_);
    owner_.reset();
  }

 private:
  std::weak_ptr<HookOwner> owner_;
  std::uint64_t id_ = 0;
};

/// Hooks in the order in which they run. A call uses a snapshot, so a hook may add and remove hooks; the change takes
/// effect from the next call. Thread-safe.
///
/// REQUIRES: owned by a std::shared_ptr, to which handles refer weakly.
template <class Function>
class HookList final : public HookOwner, public std::enable_shared_from_this<HookList<Function>> {
 public:
  struct Entry {
    std::uint64_t id;
    Function function;
    bool always_call;
  };
  using Snapshot = std::shared_ptr<const std::vector<Entry>>;

  HookList() = default;
  /// Also counts its hooks in `total`. REQUIRES: total outlives the list.
  explicit HookList(std::atomic<std::size_t>& total) : total_(&total) {}

  HookHandle add(Function function, bool prepend, bool always_call) {
    const std::lock_guard lock(mutex_);
    auto entries = std::make_shared<std::vector<Entry>>(entries_ ? *entries_ : std::vector<Entry>());
    const std::uint64_t id = next_id_++;
    entries->insert(prepend ? entries->begin() : entries->end(), Entry{id, std::move(function), always_call});
    publish(std::move(entries));
    return HookHandle(this->weak_from_this(), id);
  }

  void remove_hook(std::uint64_t id) noexcept override {
    Snapshot removed;  // Destroyed after the lock is released, because the hook's contents may call back here.
    const std::lock_guard lock(mutex_);
    if (!entries_) return;
    auto entries = std::make_shared<std::vector<Entry>>();
    for (const Entry& entry : *entries_) {
      if (entry.id != id) entries->push_back(entry);
    }
    removed = entries_;
    publish(std::move(entries));
  }

  /// Null if there are no hooks.
  Snapshot snapshot() const {
    if (empty()) return nullptr;
    const std::lock_guard lock(mutex_);
    return entries_;
  }

  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  /// Appends copies of the other's hooks; handles of the other do not affect the copies.
  void append(const HookList& other) {
    const Snapshot entries = other.snapshot();
    if (!entries) return;
    for (const Entry& entry : *entries) add(entry.function, /*prepend=*/false, entry.always_call);
  }

 private:
  void publish(std::shared_ptr<std::vector<Entry>> entries) noexcept {
    const std::size_t before = count_.exchange(entries->size(), std::memory_order_relaxed);
    if (total_ != nullptr) total_->fetch_add(entries->size() - before, std::memory_order_relaxed);
    entries_ = std::move(entries);
  }

  mutable std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  Snapshot entries_;
  std::uint64_t next_id_ = 0;
  std::atomic<std::size_t>* total_ = nullptr;
};

}  // namespace plimsoll::nn
