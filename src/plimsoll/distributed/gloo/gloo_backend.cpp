#include <signal.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "plimsoll/distributed/backend.h"

namespace plimsoll::distributed {
namespace {

// Gloo writes to sockets whose peer may be dead. Python ignores the resulting SIGPIPE; a C++ program would end without
// a message, before gloo reports the error.
void ignore_broken_pipes() {
  struct sigaction current{};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && !(current.sa_flags & SA_SIGINFO) && current.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

// Only pointers to gloo's classes are used here, so the version of its headers does not matter. Do not make an object
// of a c10d class that derives from a gloo class (GlooStore) here: its virtual table would have the headers' version.
Backend make_gloo(const BackendRequest& request) {
  ignore_broken_pipes();
  auto options = c10d::ProcessGroupGloo::Options::create_default(request.timeout);  // Respects GLOO_SOCKET_IFNAME.
  options->global_ranks_in_group = request.global_ranks;
  options->group_name = request.group_name;
  auto backend =
      c10::make_intrusive<c10d::ProcessGroupGloo>(request.store, request.rank, request.size, std::move(options));
  backend->setSequenceNumberForGroup();
  return backend;
}

}  // namespace plimsoll::distributed
