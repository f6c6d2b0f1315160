#pragma once

#include <c10/core/Storage.h>

/// The source for pinned memory (tensor.pin_memory(), FSDP's CPU offload): a tap before torch's host allocator for
/// CUDA, beside that before the CPU allocator, because pinned memory is the CPU's and does not come from there. It is
/// heard of on device "cpu". Where there is no GPU there is nothing to tap.
///
/// A block counts what the host allocator counts for it as active (HostStats::active_bytes): the bytes asked for,
/// rounded up to a power of two unless pinned_max_round_threshold_mb or pinned_max_cached_size_mb say otherwise.
/// Another allocator, if one is set with at::setHostAllocator, is taken to round alike. It counts until its tensor
/// gives it back. The allocator goes on counting a block that a stream was told to use (record_event) until it looks at
/// the stream's events, at its next allocation or empty_cache(); of that nobody is told. A cached block, which no
/// tensor has, counts nowhere.

namespace plimsoll::capture {

/// Puts the tap before the host allocator that torch uses for CUDA now. Everything as said of install_cpu_tap; nothing
/// happens where there is no GPU.
void install_host_tap();

/// Brings a pinned storage that was made before the tap, or when nobody listened, under it: its end and its resizing
/// are seen from now on. Returns whether that is possible; it is not for what did not come from the host allocator.
bool adopt_pinned_storage(const c10::Storage& storage);

}  // namespace plimsoll::capture
