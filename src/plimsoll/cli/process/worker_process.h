#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "plimsoll/cli/process/signal_watch.h"

namespace plimsoll::cli {

/// A program whose standard input and output are one socket to us. What it writes to standard error is kept, to be told
/// where it fails. It leads a process group of its own, which is ended with it: no process is left behind, and the
/// terminal's signals reach only us.
class WorkerProcess {
 public:
  /// Throws SystemError if the program cannot be started.
  /// REQUIRES: !arguments.empty(); arguments[0] is a path.
  WorkerProcess(const std::vector<std::string>& arguments, const SignalWatch& signals);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int socket() const { return socket_; }

  /// Ends it where it has not ended by itself, and says how it did, with the last lines that it wrote to standard
  /// error: "ended with exit code 3; its last words: …".
  std::string how_it_ended();

 private:
  void end();
  std::string last_words() const;

  int socket_ = -1;
  int errors_ = -1;  ///< A file in memory.
  pid_t process_ = 0;
};

}  // namespace plimsoll::cli
