#pragma once

#include <cstdint>
#include <memory>
#include <utility>

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

}  // namespace plimsoll::nn
