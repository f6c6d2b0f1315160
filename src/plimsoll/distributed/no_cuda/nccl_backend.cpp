#include <c10/util/Exception.h>

#include "plimsoll/distributed/backend.h"

namespace plimsoll::distributed {

Backend make_nccl(const BackendRequest&) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "init_process_group: the \"nccl\" backend needs a CUDA build of torch, but this one is for "
      "the CPU. Use \"gloo\", or build against a CUDA torch.");
}

}  // namespace plimsoll::distributed
