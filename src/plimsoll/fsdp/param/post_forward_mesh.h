#pragma once

#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/fsdp/policies.h"

namespace plimsoll::fsdp {

/// Over which ranks parameters stay sharded after forward: those of `mesh_info`, fewer, or null where they stay whole.
/// Mirrors _get_post_forward_mesh_info (torch 2.13).
MeshInfo post_forward_mesh(const ReshardAfterForward& reshard_after_forward, const MeshInfo& mesh_info);

}  // namespace plimsoll::fsdp
