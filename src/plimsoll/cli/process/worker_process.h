#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "plimsoll/cli/process/signal_watch.h"

namespace plimsoll::cli {

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
