#pragma once

#include <c10/core/Storage.h>

/// The CPU's source: a tap before torch's CPU allocator, which sees every allocation and, through the deleter, every
/// free on whatever thread.

namespace plimsoll::capture {

/// Puts the tap before the allocator that torch uses for the CPU now. It stays for the rest of the process and passes
/// everything through while nobody listens. To be called again whenever a listener comes: somebody may have set another
/// allocator since.
void install_cpu_tap();

/// Brings a storage that was made before the tap under it: its end and its resizing are seen from now on.
/// Returns whether that is possible; it is not for memory that is not the allocator's (from_blob, mapped files).
bool adopt_cpu_storage(const c10::Storage& storage);

}  // namespace plimsoll::capture
