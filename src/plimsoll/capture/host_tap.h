#pragma once

#include <c10/core/Storage.h>

/// The source for pinned memory (tensor.pin_memory(), FSDP's CPU offload): a tap in front of torch's host allocator for
/// CUDA. Pinned memory is reported on device "cpu", although the CPU allocator does not provide it. Without a GPU the
/// tap does nothing.
///
/// A block counts as in HostStats::active_bytes: the requested bytes, rounded up to a power of two unless
/// pinned_max_round_threshold_mb or pinned_max_cached_size_mb say otherwise. For an allocator set with
/// at::setHostAllocator the tap assumes the same rounding. A block counts until its tensor frees it. If a stream uses
/// the block (record_event), the allocator counts it until it next checks the stream's events; it does not report that
/// moment. Cached blocks do not count.

namespace plimsoll::capture {

/// Installs the tap in front of torch's current host allocator for CUDA, as install_cpu_tap does. Does nothing without
/// a GPU.
void install_host_tap();

/// Observes the free and resize of a pinned storage that is older than the tap or the first listener. Returns false for
/// memory that is not the host allocator's.
bool adopt_pinned_storage(const c10::Storage& storage);

}  // namespace plimsoll::capture
