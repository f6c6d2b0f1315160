#pragma once

#include "plimsoll/pretend/cudnn/object.h"
#include "plimsoll/pretend/model/library_call.h"

namespace plimsoll::pretend::cudnn {

/// cudnnHandle_t. It takes the profile's cudnn_handle bytes on its device while it lives.
struct Handle : Object<0x43444e48> {
  int device = 0;
  void* stream = nullptr;
  Bytes charged = 0;
};

/// Puts `function` on the handle's stream, for a routine whose results are on the device.
int enqueue(const Handle* handle, const char* function);

}  // namespace plimsoll::pretend::cudnn

/// Defines an entry point that only puts work on its handle's stream. The handle is always the first argument. The
/// other arguments describe device memory and are not read.
#define PLIMSOLL_CUDNN_WORK(function)                                           \
  PLIMSOLL_API int function(const ::plimsoll::pretend::cudnn::Handle* handle) { \
    return ::plimsoll::pretend::cudnn::enqueue(handle, #function);              \
  }
