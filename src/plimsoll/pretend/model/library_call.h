#pragma once

#include <cstdint>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/streams/feed.h"

/// The part of the machine that the face of a vendor library uses. Streams are CUDA's own handles (cudaStream_t and
/// CUstream are the same): null and the two special values mean the default stream of the current device.

#define PLIMSOLL_API extern "C" __attribute__((visibility("default")))

/// A second name of a function that the same file defines.
#define PLIMSOLL_ALIAS(name, function) PLIMSOLL_API decltype(function) name __attribute__((alias(#function)))

namespace plimsoll::pretend {

struct Stream;

/// The calling thread's current device.
int current_device();

struct Device;

/// Whether `device` is the index of a device.
bool has_device(int device);

/// The calling thread's current device. Creates its context if necessary.
Device& ensure_context();

/// The stream behind a handle; null if the handle is stale.
Stream* stream_of(void* handle);

/// Reports a library routine that only puts work on a stream.
void enqueue_call(const char* function, void* stream);

/// A matrix product of `batch` pairs, m×k times k×n.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
};
void enqueue_gemm(const char* function, void* stream, const Gemm& gemm);

/// A collective or a point-to-point transfer in which this rank sends `bytes`. The fields are those of Event.
struct Collective {
  Bytes bytes = 0;
  std::uint32_t communicator = 0;
  int rank = 0, ranks = 0;
  int peer = kNoPeer;
};
void enqueue_collective(const char* function, void* stream, const Collective& collective);

/// A kernel launch. `key` identifies the kernel (Functions).
struct Launch {
  const void* key = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  Bytes shared = 0;
};
/// Returns false if the handle is stale.
bool enqueue_launch(const Launch& launch, void* stream);

/// Rows of `width` bytes, `pitch` apart, in host memory.
struct HostRows {
  void* start = nullptr;
  Bytes pitch = 0;
  Bytes width = 0;
  Bytes height = 1;
};
/// A copy from `source` on the device to the host. The host receives zeros, or the bytes of
/// control::answer_next_read_back. The copy is counted and reported before the bytes are written. Returns false if the
/// handle is stale.
bool enqueue_read_back(const char* function, const void* source, const HostRows& destination, void* stream);

/// Takes device memory for a library. Returns false if the device is out of memory.
bool charge(int device, Bytes bytes, Reason reason);
void discharge(int device, Bytes bytes, Reason reason);

/// Reports a call of the unimplemented `function`: in the feed, and the first time on stderr. Returns `status`, the
/// library's own code for "not supported", for the caller to return.
int unpretended(const char* function, int status) noexcept;

/// The unimplemented function that the calling thread called last, if its name begins with `prefix`; otherwise empty.
/// For error strings.
const char* last_unpretended(std::string_view prefix) noexcept;

/// Whether `pointer` is host memory, where values may be written. The pretend GPU never writes results to device
/// memory.
bool is_host(const void* pointer);

}  // namespace plimsoll::pretend
