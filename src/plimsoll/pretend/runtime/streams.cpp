// Streams, events, callbacks.

#include "plimsoll/pretend/cuda/elapsed_time.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

PLIMSOLL_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  *stream = reinterpret_cast<cudaStream_t>(machine().create_stream(ensure_context().index, priority, flags));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

PLIMSOLL_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

PLIMSOLL_API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return with_stream(handle, [](Stream& stream) {
    if (stream.id == 0) return cudaErrorInvalidResourceHandle;
    machine().destroy_stream(&stream);
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return with_stream(handle, [](Stream& stream) {
    return machine().forbid_in_capture(stream) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return with_stream(handle, [](Stream& stream) {
    if (machine().forbid_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
    machine().synchronize(stream.device, "cudaStreamSynchronize");
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  return with_stream(handle, [&](Stream& stream) {
    return with_event(event_handle, [&](StreamEvent& event) {
      switch (machine().wait(stream, event)) {
        case Waited::kOnDefaultStream:
          return cudaErrorStreamCaptureImplicit;
        case Waited::kAcrossCaptures:
          return cudaErrorStreamCaptureMerge;
        case Waited::kDone:
          break;
      }
      return cudaSuccess;
    });
  });
}

PLIMSOLL_API cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return with_stream(handle, [&](Stream& stream) {
    *priority = stream.priority;
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return with_stream(handle, [&](Stream& stream) {
    *flags = stream.flags;
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return with_stream(handle, [&](Stream& stream) {
    *id = stream.id;
    return cudaSuccess;
  });
}

#if CUDART_VERSION >= 12080
PLIMSOLL_API cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return with_stream(handle, [&](Stream& stream) {
    *device = stream.device;
    return cudaSuccess;
  });
}
#endif

PLIMSOLL_API cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* argument,
                                               unsigned) {
  return with_stream(handle, [&](Stream& stream) {
    if (machine().forbid_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
    callback(handle, cudaSuccess, argument);
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return with_stream(handle, [&](Stream& stream) {
    machine().enqueue(stream, {.kind = Happening::kCall, .name = "host function"}, [=] { function(argument); });
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = reinterpret_cast<cudaEvent_t>(machine().create_event(ensure_context().index, flags));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

PLIMSOLL_API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return with_event(handle, [](StreamEvent& event) {
    machine().destroy_event(&event);
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned) {
  return with_event(handle, [&](StreamEvent& event) {
    return with_stream(stream_handle, [&](Stream& stream) {
      return machine().record(event, stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
    });
  });
}

PLIMSOLL_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

PLIMSOLL_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return with_event(handle,
                    [](StreamEvent& event) { return machine().completed(event) ? cudaSuccess : cudaErrorNotReady; });
}

PLIMSOLL_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return with_event(handle, [](StreamEvent& event) {
    machine().synchronize(event, "cudaEventSynchronize");
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
  return with_event(first, [&](StreamEvent& start) {
    return with_event(last, [&](StreamEvent& end) {
      switch (elapsed(start, end)) {
        case Elapsed::kInvalid:
          return cudaErrorInvalidResourceHandle;
        case Elapsed::kNotReady:
          return cudaErrorNotReady;
        case Elapsed::kKnown:
          *milliseconds = kElapsedMilliseconds;
      }
      return cudaSuccess;
    });
  });
}
