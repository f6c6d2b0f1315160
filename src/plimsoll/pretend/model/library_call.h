#pragma once

#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/feed.h"

/// What the face of a vendor library needs of the machine. Streams are passed as CUDA's own handles (cudaStream_t and
/// CUstream are the same thing): null and the two special values mean the default stream of the current device.

#define PLIMSOLL_API extern "C" __attribute__((visibility("default")))

namespace plimsoll::pretend {

struct Stream;

/// The calling thread's current device.
int current_device();

/// The stream behind a handle; null when the handle is stale.
Stream* stream_of(void* handle);

/// A library's routine that only puts work on a stream.
void enqueue_call(const char* function, void* stream);

/// A matrix product of `batch` pairs, m×k times k×n.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
};
void enqueue_gemm(const char* function, void* stream, const Gemm& gemm);

/// A collective or a point-to-point transfer in which this rank sends `bytes`, in a group of `ranks`.
void enqueue_collective(const char* function, void* stream, Bytes bytes, int ranks);

/// Device memory that a library takes for itself. False: out of memory.
bool charge(int device, Bytes bytes, Reason reason);
void discharge(int device, Bytes bytes, Reason reason);

/// Says, once a name, on stderr and always in the feed, that `function` is not pretended; returns `status`, which the
/// caller returns in turn: the library's own code for "not supported".
int unpretended(const char* function, int status) noexcept;

/// The function that the calling thread last called in vain, for error strings; empty when there was none.
const char* last_unpretended() noexcept;

/// True where values may be written: host memory, as opposed to device memory, to which pretend results never go.
bool is_host(const void* pointer);

}  // namespace plimsoll::pretend
