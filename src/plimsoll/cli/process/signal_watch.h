#pragma once

#include <poll.h>
#include <signal.h>

#include <array>

namespace plimsoll::cli {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT wait until `poll` is called, and make it throw: so what was
/// started is ended, and temporary files go, in destructors. What was ignored stays ignored. Those that come after the
/// last `poll` do at its end what they did before.
/// One at a time, in the main thread.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Waits until something happens to the descriptor. Throws Interrupted.
  void poll(pollfd& descriptor) const;

  /// The signal mask from before, for processes that are started meanwhile.
  const sigset_t& mask() const { return mask_; }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

  sigset_t mask_{};
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace plimsoll::cli
