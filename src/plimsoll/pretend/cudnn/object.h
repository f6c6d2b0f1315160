#pragma once

#include <cstdint>
#include <exception>
#include <new>

#include "plimsoll/pretend/cudnn/abi.h"

/// Lifetime of cuDNN objects. Each starts with a magic number, so that a null, foreign or destroyed handle is an error
/// and not a crash.
namespace plimsoll::pretend::cudnn {

/// Base of a descriptor. `Tag` is unique to the kind.
template <std::uint32_t Tag>
struct Object {
  static constexpr std::uint32_t kAlive = Tag;
  std::uint32_t magic = Tag;
};

/// The object behind a handle; null if it is not a live object of this kind.
template <class T>
T* live(T* object) {
  return object != nullptr && object->magic == T::kAlive ? object : nullptr;
}
template <class T>
const T* live(const T* object) {
  return object != nullptr && object->magic == T::kAlive ? object : nullptr;
}

template <class T>
int create(T** out) {
  if (out == nullptr) return kNullPointer;
  *out = new (std::nothrow) T;
  return *out == nullptr ? kHostAllocationFailed : kSuccess;
}

/// Null is allowed, as in cuDNN.
template <class T>
int destroy(T* object) {
  if (object == nullptr) return kSuccess;
  if (live(object) == nullptr) return kBadParam;
  object->magic = 0;
  delete object;
  return kSuccess;
}

/// Calls `body`, which returns a status, and does not let exceptions cross the C boundary.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return kHostAllocationFailed;
  } catch (const std::exception&) {
    return kInternalError;
  }
}

/// Writes `value` to the caller's pointer, which may be null.
template <class T, class U>
void give(T* out, U value) {
  if (out != nullptr) *out = static_cast<T>(value);
}

}  // namespace plimsoll::pretend::cudnn
