#include <signal.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "plimsoll/distributed/backend.h"

namespace plimsoll::distributed {
namespace {

// Gloo writes to sockets whose other end may have died. Python ignores the signal of that; a C++ program would end by
// it without a word, before gloo can tell of the error.
void ignore_broken_pipes() {
  struct sigaction current{};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && !(current.sa_flags & SA_SIGINFO) && current.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

// Only pointers to gloo's classes pass through here, so the version of its headers does not matter. A c10d class that
// derives from one of them (GlooStore) must not be made in this file: its table of functions would be of that version.
Backend make_gloo(const BackendRequest& request) {
  ignore_broken_pipes();
  auto options = c10d::ProcessGroupGloo::Options::create_default(request.timeout);  // Heeds GLOO_SOCKET_IFNAME.
  options->global_ranks_in_group = request.global_ranks;
  options->group_name = request.group_name;
  auto backend =
      c10::make_intrusive<c10d::ProcessGroupGloo>(request.store, request.rank, request.size, std::move(options));
  backend->setSequenceNumberForGroup();
  return backend;
}

}  // namespace plimsoll::distributed
