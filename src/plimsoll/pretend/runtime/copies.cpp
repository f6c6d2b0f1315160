// Copies and fills. Device memory has no contents: the host receives zeros, and the read-back is counted.

#include <cstring>
#include <functional>

#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;
using plimsoll::Bytes;

namespace {

/// Rows of `width` bytes, `pitch` apart.
struct Rows {
  void* destination;
  std::size_t destination_pitch;
  const void* source;
  std::size_t source_pitch;
  std::size_t width;
  std::size_t height;
};

/// Copies from host to host.
void move(const Rows& rows) {
  for (std::size_t row = 0; row < rows.height; ++row) {
    std::memmove(static_cast<char*>(rows.destination) + row * rows.destination_pitch,
                 static_cast<const char*>(rows.source) + row * rows.source_pitch, rows.width);
  }
}

cudaError_t copy(const char* function, const Rows& rows, cudaStream_t handle, bool waits) {
  const bool to_host = !machine().device_of(rows.destination);
  const bool from_host = !machine().device_of(rows.source);
  return with_stream(handle, [&](Stream& stream) {
    if (waits && machine().forbid_in_captures_of(stream.device)) return cudaErrorStreamCaptureImplicit;
    if (to_host && !from_host) {
      enqueue_read_back(function, rows.source, {rows.destination, rows.destination_pitch, rows.width, rows.height},
                        handle);
    } else {
      const Event event{.kind = Happening::kCopy,
                        .name = function,
                        .bytes = rows.width * rows.height,
                        .source = rows.source,
                        .destination = rows.destination};
      machine().enqueue(stream, event, to_host ? std::function<void()>([rows] { move(rows); }) : nullptr);
    }
    if (waits) machine().synchronize(stream.device, function);
    return cudaSuccess;
  });
}

cudaError_t copy(const char* function, void* destination, const void* source, size_t bytes, cudaStream_t stream,
                 bool waits) {
  if (bytes == 0) return cudaSuccess;
  return copy(function, {destination, bytes, source, bytes, bytes, 1}, stream, waits);
}

cudaError_t fill(const char* function, void* destination, size_t pitch, int value, size_t width, size_t height,
                 cudaStream_t handle) {
  return with_stream(handle, [&](Stream& stream) {
    const Event event{.kind = Happening::kFill, .name = function, .bytes = width * height, .destination = destination};
    const auto set = [=] {
      for (size_t row = 0; row < height; ++row) {
        std::memset(static_cast<char*>(destination) + row * pitch, value, width);
      }
    };
    machine().enqueue(stream, event, is_host(destination) ? std::function<void()>(set) : nullptr);
    return cudaSuccess;
  });
}

/// Calls `call` with the address of `bytes` bytes in a device variable, starting at `offset`.
template <typename Call>
cudaError_t in_symbol(const void* symbol, size_t bytes, size_t offset, Call call) {
  void* start = nullptr;
  size_t available = 0;
  if (const cudaError_t error = cudaGetSymbolAddress(&start, symbol); error != cudaSuccess) return error;
  if (const cudaError_t error = cudaGetSymbolSize(&available, symbol); error != cudaSuccess) return error;
  if (offset > available || bytes > available - offset) return status(cudaErrorInvalidValue);
  return call(static_cast<char*>(start) + offset);
}

}  // namespace

PLIMSOLL_API cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind) {
  return copy("cudaMemcpy", destination, source, bytes, nullptr, true);
}

PLIMSOLL_API cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind,
                                         cudaStream_t stream) {
  return copy("cudaMemcpyAsync", destination, source, bytes, stream, false);
}

PLIMSOLL_API cudaError_t cudaMemcpyPeer(void* destination, int, const void* source, int, size_t bytes) {
  return copy("cudaMemcpyPeer", destination, source, bytes, nullptr, true);
}

PLIMSOLL_API cudaError_t cudaMemcpyPeerAsync(void* destination, int, const void* source, int, size_t bytes,
                                             cudaStream_t stream) {
  return copy("cudaMemcpyPeerAsync", destination, source, bytes, stream, false);
}

PLIMSOLL_API cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source,
                                      size_t source_pitch, size_t width, size_t height, cudaMemcpyKind) {
  return copy("cudaMemcpy2D", {destination, destination_pitch, source, source_pitch, width, height}, nullptr, true);
}

PLIMSOLL_API cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source,
                                           size_t source_pitch, size_t width, size_t height, cudaMemcpyKind,
                                           cudaStream_t stream) {
  return copy("cudaMemcpy2DAsync", {destination, destination_pitch, source, source_pitch, width, height}, stream,
              false);
}

PLIMSOLL_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                                            cudaMemcpyKind) {
  return in_symbol(symbol, bytes, offset, [&](void* destination) {
    return copy("cudaMemcpyToSymbol", destination, source, bytes, nullptr, true);
  });
}

PLIMSOLL_API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset,
                                                 cudaMemcpyKind, cudaStream_t stream) {
  return in_symbol(symbol, bytes, offset, [&](void* destination) {
    return copy("cudaMemcpyToSymbolAsync", destination, source, bytes, stream, false);
  });
}

PLIMSOLL_API cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, size_t bytes, size_t offset,
                                              cudaMemcpyKind) {
  return in_symbol(symbol, bytes, offset, [&](const void* source) {
    return copy("cudaMemcpyFromSymbol", destination, source, bytes, nullptr, true);
  });
}

PLIMSOLL_API cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, size_t bytes, size_t offset,
                                                   cudaMemcpyKind, cudaStream_t stream) {
  return in_symbol(symbol, bytes, offset, [&](const void* source) {
    return copy("cudaMemcpyFromSymbolAsync", destination, source, bytes, stream, false);
  });
}

PLIMSOLL_API cudaError_t cudaMemset(void* destination, int value, size_t bytes) {
  return fill("cudaMemset", destination, bytes, value, bytes, 1, nullptr);
}

PLIMSOLL_API cudaError_t cudaMemsetAsync(void* destination, int value, size_t bytes, cudaStream_t stream) {
  return fill("cudaMemsetAsync", destination, bytes, value, bytes, 1, stream);
}

PLIMSOLL_API cudaError_t cudaMemset2D(void* destination, size_t pitch, int value, size_t width, size_t height) {
  return fill("cudaMemset2D", destination, pitch, value, width, height, nullptr);
}

PLIMSOLL_API cudaError_t cudaMemset2DAsync(void* destination, size_t pitch, int value, size_t width, size_t height,
                                           cudaStream_t stream) {
  return fill("cudaMemset2DAsync", destination, pitch, value, width, height, stream);
}
