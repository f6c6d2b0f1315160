#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"

/// CUDA's source: the caching allocator's own trace, which tells of every block and segment, on every thread, on a real
/// GPU and on a pretended one. Builds of torch without CUDA have none of it: then there is nothing to hear.

namespace plimsoll::capture {

/// Listens from now on, for the rest of the process; what is allocated already is found too. Does nothing where there
/// is no GPU. Throws where the allocator in use has no trace (backend:cudaMallocAsync, PYTORCH_NO_CUDA_MEMORY_CACHING).
void start_cuda_trace();

/// From now on start_cuda_trace does nothing in a process that has not initialised CUDA, instead of initialising it:
/// whoever calls this calls start_cuda_trace again when CUDA is there. A process that forks before it uses CUDA stays
/// able to.
void wait_for_cuda();

/// Makes the size of the last block of each device what the allocator counts for it, and checks the books against the
/// allocator's. Every look at the books comes after it. Takes the allocator's lock.
void settle_cuda_trace();

/// What the allocator itself says is active; nothing where that is no GPU of ours.
std::optional<Bytes> cuda_active_bytes(c10::Device device);

/// Where torch lets cuBLAS and cuBLASLt work: blocks of the caching allocator that live on between operators and that
/// no tensor owns. REQUIRES: no allocator lock is held.
std::vector<std::pair<c10::Device, const void*>> cuda_workspaces();
/// Changes whenever there may be another one.
std::uint64_t cuda_workspaces_version();

}  // namespace plimsoll::capture
