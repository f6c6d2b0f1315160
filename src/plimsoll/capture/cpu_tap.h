#pragma once

#include <c10/core/Storage.h>

/// The source for CPU memory: a tap in front of torch's CPU allocator. It sees every allocation and, through the
/// deleter, every free on any thread.

namespace plimsoll::capture {

/// Installs the tap in front of torch's current CPU allocator, for the rest of the process. Without listeners the tap
/// passes every call through. Call it again for each new listener: another allocator may have been set since.
void install_cpu_tap();

/// Observes the free and resize of a storage that is older than the tap. Returns false for memory that is not the
/// allocator's (from_blob, mapped files).
bool adopt_cpu_storage(const c10::Storage& storage);

}  // namespace plimsoll::capture
