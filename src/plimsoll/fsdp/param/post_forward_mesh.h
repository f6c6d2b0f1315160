#pragma once

#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/fsdp/policies.h"

namespace plimsoll::fsdp {

/// The ranks over which parameters are sharded after forward: those of `mesh_info`, fewer, or null if they stay whole.
/// Mirrors _get_post_forward_mesh_info (torch 2.13).
MeshInfo post_forward_mesh(const ReshardAfterForward& reshard_after_forward, const MeshInfo& mesh_info);

}  // namespace plimsoll::fsdp
