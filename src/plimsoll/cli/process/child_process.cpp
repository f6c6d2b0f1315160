#include "plimsoll/cli/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "plimsoll/base/errors.h"

extern char** environ;

namespace plimsoll::cli {
namespace {

constexpr std::array kForwarded{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::atomic<pid_t> child_to_signal{0};
static_assert(std::atomic<pid_t>::is_always_lock_free, "read in a signal handler");

void forward(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  // Signals of the terminal come from the kernel, which has sent them to the child too.
  const pid_t child = child_to_signal.load();
  if (child > 0 && info->si_code != SI_KERNEL) kill(child, signal);
  errno = saved;
}

/// Sends the forwarded signals to the child. They stay blocked until `open` names the child.
class Forwarding {
 public:
  Forwarding() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kForwarded) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &mask_);
    struct sigaction action{};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < kForwarded.size(); ++i) {
      sigaction(kForwarded[i], nullptr, &previous_[i]);
      // An ignored signal (SIGHUP under nohup) must stay ignored in the child; a handler here would undo that.
      if (previous_[i].sa_handler != SIG_IGN) sigaction(kForwarded[i], &action, nullptr);
    }
  }

  ~Forwarding() {
    child_to_signal = 0;
    for (std::size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &previous_[i], nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  void open(pid_t child) {
    child_to_signal = child;
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

  const sigset_t& mask() const { return mask_; }

 private:
  sigset_t mask_{};
  std::array<struct sigaction, kForwarded.size()> previous_{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

ChildExit wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw SystemError("waitpid");
  }
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), std::nullopt};
}

[[noreturn]] void cannot_start(const std::string& program, int error) {
  throw SystemError("cannot start " + program, error);
}

}  // namespace

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

ChildExit run_child(const std::vector<std::string>& arguments, const Environment& environment, Output output) {
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts;
  for (const auto& [name, value] : environment) environment_texts.push_back(name + "=" + value);
  std::vector<char*> argument_list = pointers(argument_texts);
  std::vector<char*> environment_list = pointers(environment_texts);

  Forwarding forwarding;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &forwarding.mask());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output == Output::kOurStandardError) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, arguments[0].c_str(), &actions, &attributes, argument_list.data(), environment_list.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) cannot_start(arguments[0], error);
  forwarding.open(child);
  return wait_for(child);
}

Captured capture_child(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw SystemError("pipe2");
  std::vector<std::string> argument_texts = arguments;
  std::vector<char*> argument_list = pointers(argument_texts);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr, argument_list.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    cannot_start(arguments[0], error);
  }
  Captured captured;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    if (got > 0) captured.output.append(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  close(ends[0]);
  captured.exit = wait_for(child);
  return captured;
}

}  // namespace plimsoll::cli
