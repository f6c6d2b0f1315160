#pragma once

#include <cstdint>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/streams/feed.h"

/// What the face of a vendor library needs of the machine. Streams are passed as CUDA's own handles (cudaStream_t and
/// CUstream are the same thing): null and the two special values mean the default stream of the current device.

#define PLIMSOLL_API extern "C" __attribute__((visibility("default")))

namespace plimsoll::pretend {

struct Stream;

/// The calling thread's current device.
int current_device();

struct Device;

/// True for the index of a card that is there.
bool has_device(int device);

/// The calling thread's current device, with its context created.
Device& here();

/// The stream behind a handle; null when the handle is stale.
Stream* stream_of(void* handle);

/// A library's routine that only puts work on a stream.
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

/// A kernel's launch. `key` is what its name is known by (Functions).
struct Launch {
  const void* key = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  Bytes shared = 0;
};
/// False: the stream's handle is stale.
bool enqueue_launch(const Launch& launch, void* stream);

/// Rows of `width` bytes, `pitch` apart, in host memory.
struct HostRows {
  void* start = nullptr;
  Bytes pitch = 0;
  Bytes width = 0;
  Bytes height = 1;
};
/// A copy from `source` on the device to the host, which gets zeros, or what the thread was told to answer
/// (control::answer_next_read_back). Counted and reported before they are written.
/// False: the stream's handle is stale.
bool enqueue_read_back(const char* function, const void* source, const HostRows& destination, void* stream);

/// Device memory that a library takes for itself. False: out of memory.
bool charge(int device, Bytes bytes, Reason reason);
void discharge(int device, Bytes bytes, Reason reason);

/// Says, once a name, on stderr and always in the feed, that `function` is not pretended; returns `status`, which the
/// caller returns in turn: the library's own code for "not supported".
int unpretended(const char* function, int status) noexcept;

/// The function that the calling thread last called in vain, for error strings, if its name begins with `prefix`; else
/// empty.
const char* last_unpretended(std::string_view prefix) noexcept;

/// True where values may be written: host memory, as opposed to device memory, to which pretend results never go.
bool is_host(const void* pointer);

}  // namespace plimsoll::pretend
