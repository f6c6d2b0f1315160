#include <c10/util/Exception.h>

#include "plimsoll/distributed/backend.h"

namespace plimsoll::distributed {

Backend make_gloo(const BackendRequest&) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "init_process_group: the \"gloo\" backend is not in this build, because gloo's headers were missing when it "
      "was configured. Install them (Debian and Ubuntu: apt install libgloo-dev), delete the build's "
      "CMakeCache.txt and build again; or make a c10d::ProcessGroup by other means and pass it to "
      "set_default_group.");
}

}  // namespace plimsoll::distributed
