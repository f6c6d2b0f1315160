#pragma once

#include <poll.h>
#include <signal.h>

#include <array>

namespace plimsoll::cli {

/// Holds back SIGINT, SIGTERM, SIGHUP and SIGQUIT until `poll`, which throws for them: so destructors end processes and
/// remove temporary files. Ignored signals stay ignored. A signal after the last `poll` takes its usual effect in the
/// destructor. One object at a time, in the main thread.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Waits for an event on the descriptor. Throws Interrupted.
  void poll(pollfd& descriptor) const;

  /// The earlier signal mask, for new processes.
  const sigset_t& mask() const { return mask_; }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

  sigset_t mask_{};
  std::array<struct sigaction, kSignals.size()> previous_{};
};

}  // namespace plimsoll::cli
