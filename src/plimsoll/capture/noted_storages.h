#pragma once

#include <c10/core/Storage.h>

#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/capture/registry.h"

/// The source for storages without memory: those of meta and fake tensors, which have a size and a nominal device but
/// no address. A dispatch mode that sees the tensors notes their storages. The end of a storage is observed
/// automatically.
namespace plimsoll::capture {

/// Counts the storage as `bytes` of `device` until it is destroyed; on a GPU in blocks of 512 bytes, as the caching
/// allocator does. Returns false, and does nothing, if the storage is already noted or has memory.
bool note_storage(const c10::Storage& storage, c10::Device device, Bytes bytes);

/// Sets the new size of a noted storage; does nothing for other storages.
void noted_storage_resized(const c10::Storage& storage, Bytes bytes);

/// The noted bytes of a device. Its allocator does not count them.
Bytes noted_bytes(c10::Device device);

/// The allocation of a noted storage.
std::optional<Registry::Found> find_noted(const c10::Storage& storage);

}  // namespace plimsoll::capture
