#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::cublas {

/// Reports that the host is given `bytes` of the device's, before they (zeros) are written to `destination`.
inline void read_back(const char* function, void* stream_handle, Bytes bytes, const void* destination,
                      const void* source = nullptr) {
  Stream* stream = stream_of(stream_handle);
  if (stream == nullptr) return;
  Event event;
  event.kind = Happening::kReadBack;
  event.name = function;
  event.bytes = bytes;
  event.source = source;
  event.destination = destination;
  machine().count_read_back();
  machine().enqueue(*stream, event);
}

}  // namespace plimsoll::pretend::cublas
