#pragma once

namespace plimsoll {

/// A scope that marks its thread as doing one kind of work. Scopes of one kind nest; kinds and threads are independent.
/// A kind is a class that derives from ThreadScope:
///
///     class Recomputation : public ThreadScope<Recomputation> {};
///
/// REQUIRES: it is destroyed on the thread that made it.
template <class Kind>
class ThreadScope {
 public:
  ThreadScope() noexcept { ++open_; }
  ~ThreadScope() { --open_; }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  /// Whether this thread is in a scope of this kind.
  static bool under_way() noexcept { return open_ != 0; }

 private:
  static inline constinit thread_local int open_ = 0;
};

}  // namespace plimsoll
