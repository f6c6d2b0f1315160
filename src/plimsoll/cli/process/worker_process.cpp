#include "plimsoll/cli/process/worker_process.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/planning.h"
#include "plimsoll/report/text/amounts.h"

extern char** environ;
namespace plimsoll::cli {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free, "written in a signal handler");

void note(int signal) { caught = signal; }

constexpr off_t kMostErrorText = 2000;

/// A process that has closed its output has this long to end by itself.
constexpr int kPatienceMilliseconds = 1000;

std::string description_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")" +
           (signal == SIGKILL ? ": the machine may be out of memory" : "");
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

SignalWatch::SignalWatch() {
  caught = 0;
  sigset_t set;
  sigemptyset(&set);
  struct sigaction action{};
  action.sa_handler = note;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaddset(&set, kSignals[i]);
    sigaction(kSignals[i], nullptr, &previous_[i]);
    if (previous_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
  sigprocmask(SIG_BLOCK, &set, &mask_);
}

SignalWatch::~SignalWatch() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void SignalWatch::poll(pollfd& descriptor) const {
  descriptor.revents = 0;
  // ppoll unblocks signals only while it waits, so none is lost between the test of `caught` and the wait.
  while (ppoll(&descriptor, 1, nullptr, &mask_) < 0) {
    if (errno != EINTR) throw SystemError("ppoll");
    if (caught != 0) throw Interrupted(caught);
  }
}

WorkerProcess::WorkerProcess(const std::vector<std::string>& arguments, const SignalWatch& signals) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw SystemError("cannot make a socket for the planner");
  socket_ = ends[0];
  errors_ = memfd_create("plimsoll-planner", MFD_CLOEXEC);

  std::vector<char*> list;
  for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
  list.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &signals.mask());
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (errors_ >= 0) posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
  const int error = posix_spawn(&process_, arguments[0].c_str(), &actions, &attributes, list.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    process_ = 0;
    end();
    throw SystemError("cannot start the planner " + arguments[0], error);
  }
}

WorkerProcess::~WorkerProcess() { end(); }

void WorkerProcess::end() {
  if (process_ > 0) {
    kill(-process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
  }
  if (socket_ >= 0) close(socket_);
  if (errors_ >= 0) close(errors_);
  socket_ = errors_ = -1;
}

std::string WorkerProcess::how_it_ended() {
  if (process_ <= 0) return "ended before";
  int status = 0;
  pid_t ended = 0;
  for (int waited = 0; ended == 0 && waited < kPatienceMilliseconds; ++waited) {
    ended = waitpid(process_, &status, WNOHANG);
    if (ended == 0) usleep(1000);
  }
  std::string text = ended == process_ ? description_of(status) : "closed its output and did not end";
  const std::string message = last_message();
  if (!message.empty()) text += "; last message: " + message;
  // Its children are still in its group; the system does not reuse the number of a group with members.
  if (ended == process_) {
    kill(-process_, SIGKILL);
    process_ = 0;
  }
  end();
  return text;
}

std::string WorkerProcess::last_message() const {
  if (errors_ < 0) return "";
  const off_t length = lseek(errors_, 0, SEEK_END);
  if (length <= 0) return "";
  std::string text(static_cast<std::size_t>(std::min(length, kMostErrorText)), '\0');
  const ssize_t got = pread(errors_, text.data(), text.size(), length - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const std::size_t line = text.rfind('\n');
  return report::strip_control_chars(line == std::string::npos ? text : text.substr(line + 1));
}

}  // namespace plimsoll::cli
