#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"

/// The source for CUDA memory: the trace of the caching allocator. It reports every block and segment on all threads,
/// on a real GPU and on the pretend GPU. Builds of torch without CUDA report nothing.

namespace plimsoll::capture {

/// Listens for the rest of the process, and finds existing allocations too. Does nothing without a GPU. Throws if the
/// allocator has no trace (backend:cudaMallocAsync, PYTORCH_NO_CUDA_MEMORY_CACHING).
void start_cuda_trace();

/// From now on start_cuda_trace does nothing until CUDA is initialised, instead of initialising it. The caller calls
/// start_cuda_trace again after that. So a process that forks before it uses CUDA can still use CUDA.
void wait_for_cuda();

/// Sets the last block of each device to the size that the allocator counts, and checks the books against the
/// allocator. Call it before each read of the books. Takes the allocator's lock.
void settle_cuda_trace();

/// The active bytes that the allocator reports; nothing if the device is not a GPU.
std::optional<Bytes> cuda_active_bytes(c10::Device device);

/// The used bytes of a device, by all processes and libraries, as its driver reports them; nothing if the device has no
/// driver.
std::optional<Bytes> taken_of_device(c10::Device device);

/// The workspaces of cuBLAS and cuBLASLt: blocks of the caching allocator that live between operators and belong to no
/// tensor. REQUIRES: the caller holds no allocator lock.
std::vector<std::pair<c10::Device, const void*>> cuda_workspaces();
/// Changes whenever there may be a new workspace.
std::uint64_t cuda_workspaces_version();

}  // namespace plimsoll::capture
