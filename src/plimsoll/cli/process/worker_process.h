#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

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

/// A program with one socket to us as standard input and output. Its standard error is kept for messages. The program
/// leads its own process group, which ends with it: no process stays behind, and the terminal's signals reach only us.
class WorkerProcess {
 public:
  /// Throws SystemError if the program cannot be started.
  /// REQUIRES: !arguments.empty(); arguments[0] is a path.
  WorkerProcess(const std::vector<std::string>& arguments, const SignalWatch& signals);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int socket() const { return socket_; }

  /// Ends the program if it still runs. Describes its end with the last line of its standard error: "ended with exit
  /// code 3; last message: …".
  std::string how_it_ended();

 private:
  void end();
  std::string last_message() const;

  int socket_ = -1;
  int errors_ = -1;  ///< A file in memory.
  pid_t process_ = 0;
};

}  // namespace plimsoll::cli
