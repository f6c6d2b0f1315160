#pragma once

#include <exception>
#include <new>

#include "plimsoll/pretend/cudnn/abi.h"
#include "plimsoll/pretend/model/object.h"

namespace plimsoll::pretend::cudnn {

using Handles = Objects<kBadParam, kBadParam, kHostAllocationFailed>;
using Descriptors = Objects<kBadParam, kNullPointer, kHostAllocationFailed>;

/// cudnnHandle_t. It takes the profile's cudnn_handle bytes on its device while it lives.
struct Handle : Object<0x43444e48> {
  int device = 0;
  std::atomic<void*> stream{nullptr};
  Bytes charged = 0;
};

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

}  // namespace plimsoll::pretend::cudnn

/// Defines the two functions that create and destroy a descriptor; null may be destroyed, as in cuDNN.
#define PLIMSOLL_CUDNN_DESCRIPTOR(name, Type)                                \
  PLIMSOLL_API int cudnnCreate##name##Descriptor(Type** out) {               \
    return ::plimsoll::pretend::cudnn::Descriptors::make(out);               \
  }                                                                          \
  PLIMSOLL_API int cudnnDestroy##name##Descriptor(Type* descriptor) {        \
    return ::plimsoll::pretend::cudnn::Descriptors::destroy_any(descriptor); \
  }

/// Defines an entry point that only puts work on its handle's stream. The handle is always the first argument. The
/// other arguments describe device memory and are not read.
#define PLIMSOLL_CUDNN_WORK(function)                                           \
  PLIMSOLL_API int function(const ::plimsoll::pretend::cudnn::Handle* handle) { \
    return ::plimsoll::pretend::cudnn::Handles::enqueue(#function, handle);     \
  }
