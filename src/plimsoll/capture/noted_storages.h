#pragma once

#include <c10/core/Storage.h>

#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/capture/registry.h"

/// The source for memory that no allocator gives: storages of meta and of fake tensors, which have a size and a device
/// that they stand for, and no address. Whoever sees the tensors (a dispatch mode) notes their storages; their end is
/// heard of by itself.
namespace plimsoll::capture {

/// The storage counts as so many bytes of `device` from now on (of a GPU in blocks of the caching allocator's, 512
/// bytes each), until it is destroyed. One that is noted already, or that has memory, is left alone. Returns whether it
/// was noted now.
bool note_storage(const c10::Storage& storage, c10::Device device, Bytes bytes);

/// It has another size now. Nothing happens for one that is not noted.
void noted_storage_resized(const c10::Storage& storage, Bytes bytes);

/// What is noted for a device: beside what its allocator knows of.
Bytes noted_bytes(c10::Device device);

/// The allocation that a noted storage is.
std::optional<Registry::Found> find_noted(const c10::Storage& storage);

}  // namespace plimsoll::capture
