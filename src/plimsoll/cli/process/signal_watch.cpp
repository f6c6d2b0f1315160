#include "plimsoll/cli/process/signal_watch.h"

#include <atomic>
#include <cerrno>
#include <string>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/planning.h"

namespace plimsoll::cli {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free, "written in a signal handler");

void note(int signal) { caught = signal; }

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

}  // namespace plimsoll::cli
