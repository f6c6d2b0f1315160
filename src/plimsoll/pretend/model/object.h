#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "plimsoll/pretend/model/library_call.h"

namespace plimsoll::pretend {

/// The base of an object behind a vendor library's handle. Each kind has its own tag, so that a null, foreign or
/// destroyed handle is an error and not a crash.
template <std::uint32_t kTag>
struct Object {
  static constexpr std::uint32_t kAlive = kTag;
  std::uint32_t magic = kTag;
};

template <class T>
bool alive(const T* object) {
  return object != nullptr && object->magic == T::kAlive;
}

/// Writes `value` to the caller's pointer, which may be null.
template <class T, class U>
void put(T* out, U value) {
  if (out != nullptr) *out = static_cast<T>(value);
}

/// Writes `value` to the caller's pointer; returns `if_null` for a null pointer, and otherwise success.
template <class T, class U>
int give(T* out, U value, int if_null) {
  if (out == nullptr) return if_null;
  *out = static_cast<T>(value);
  return 0;
}

/// Handles and descriptors with a library's own status codes: for an object that is not alive, for an invalid argument,
/// and for a lack of host memory. Success is 0 in every library.
template <int kNotAlive, int kInvalid, int kNoMemory>
struct Objects {
  template <class T, class... Fields>
  static int make(T** out, Fields&&... fields) {
    if (out == nullptr) return kInvalid;
    *out = new (std::nothrow) T{std::forward<Fields>(fields)...};
    return *out != nullptr ? 0 : kNoMemory;
  }

  template <class T>
  static int destroy(T* object) {
    if (!alive(object)) return kNotAlive;
    object->magic = 0;
    delete object;
    return 0;
  }

  /// The same, but null is allowed.
  template <class T>
  static int destroy_any(T* object) {
    return object == nullptr ? 0 : destroy(object);
  }

  template <class T, class U>
  static int get(const T* object, std::atomic<U> T::* member, U* out) {
    if (!alive(object)) return kNotAlive;
    return give(out, (object->*member).load(std::memory_order_relaxed), kInvalid);
  }

  template <class T, class U>
  static int set(T* object, std::atomic<U> T::* member, U value) {
    if (!alive(object)) return kNotAlive;
    (object->*member).store(value, std::memory_order_relaxed);
    return 0;
  }

  template <class T>
  static int set_stream(T* handle, void* stream) {
    if (alive(handle) && stream_of(stream) == nullptr) return kInvalid;
    return set(handle, &T::stream, stream);
  }

  /// Reports a routine that only puts work on the handle's stream.
  template <class T>
  static int enqueue(const char* function, const T* handle) {
    if (!alive(handle)) return kNotAlive;
    enqueue_call(function, handle->stream.load(std::memory_order_relaxed));
    return 0;
  }
};

/// Calls `body`, which returns a status; returns `no_memory` if it throws for lack of host memory.
template <class Body>
int guarded(int no_memory, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

/// The name of a status; `otherwise` if the library's table does not have it.
struct StatusName {
  int status;
  const char* name;
};
template <std::size_t kRows>
const char* name_of(const StatusName (&table)[kRows], int status, const char* otherwise) {
  for (const StatusName& row : table) {
    if (row.status == status) return row.name;
  }
  return otherwise;
}

}  // namespace plimsoll::pretend
