#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace plimsoll::nn {

/// Where hooks are kept; a handle asks it to forget one.
class HookOwner {
 public:
  virtual ~HookOwner() = default;

  /// Forgets the hook. An id that is not there (any more) is ignored.
  virtual void remove_hook(std::uint64_t id) noexcept = 0;
};

/// What registering a hook gives: the means to take it away again. It owns nothing: dropping it leaves the hook where
/// it is, and it may outlive what it was registered on. Copies stand for the same hook; removing twice does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<HookOwner> owner, std::uint64_t id) : owner_(std::move(owner)), id_(id) {}

  /// Takes the hook away. From within a hook that is running this is safe: the hooks of the call under way still run.
  void remove() noexcept {
    if (const auto owner = owner_.lock()) owner->remove_hook(id_);
    owner_.reset();
  }

 private:
  std::weak_ptr<HookOwner> owner_;
  std::uint64_t id_ = 0;
};

}  // namespace plimsoll::nn
