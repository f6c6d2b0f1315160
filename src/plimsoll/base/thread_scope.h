#pragma once

namespace plimsoll {

/// A scope that says, while it lives, that its thread is doing one kind of work. Scopes of a kind nest; those of other
/// kinds and of other threads do not count. A kind is a class that derives from it:
///
///     class Recomputation : public ThreadScope<Recomputation> {};
///
/// REQUIRES: it ends on the thread that it began on.
template <class Kind>
class ThreadScope {
 public:
  ThreadScope() noexcept { ++open_; }
  ~ThreadScope() { --open_; }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  /// Is this thread in one?
  static bool under_way() noexcept { return open_ != 0; }

 private:
  static inline constinit thread_local int open_ = 0;
};

}  // namespace plimsoll
