// Stream capture: what a stream is asked to do becomes a graph instead.

#include "plimsoll/pretend/runtime/graph_handles.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

namespace {

/// Kept for who asks, and otherwise without effect: no call that a mode forbids could do harm here, and torch relaxes
/// it around the allocations that it makes during a capture.
thread_local cudaStreamCaptureMode t_mode = cudaStreamCaptureModeGlobal;

cudaError_t begin(cudaStream_t handle, Graph* into) {
  return with_stream(handle, [&](Stream& stream) {
    if (stream.id == 0) return cudaErrorStreamCaptureUnsupported;
    return machine().begin_capture(stream, into) ? cudaSuccess : cudaErrorIllegalState;
  });
}

cudaStreamCaptureStatus status_of(const std::optional<CaptureView>& capture) {
  if (!capture) return cudaStreamCaptureStatusNone;
  return capture->active ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
}

cudaError_t capture_info(cudaStream_t handle, cudaStreamCaptureStatus* out, unsigned long long* id, cudaGraph_t* graph,
                         const cudaGraphNode_t** dependencies, size_t* dependency_count) {
  return with_stream(handle, [&](Stream& stream) {
    const std::optional<CaptureView> capture = machine().capture_of(stream);
    *out = status_of(capture);
    const bool active = *out == cudaStreamCaptureStatusActive;
    if (id != nullptr) *id = active ? capture->id : 0;
    if (graph != nullptr) *graph = active ? to_handle(capture->graph) : nullptr;
    // Handed out until the thread asks again, as CUDA does.
    thread_local std::vector<cudaGraphNode_t> ends;
    ends.clear();
    if (active) {
      for (GraphNode* node : capture->ends) ends.push_back(to_handle(node));
    }
    if (dependencies != nullptr) *dependencies = ends.data();
    if (dependency_count != nullptr) *dependency_count = ends.size();
    return cudaSuccess;
  });
}

}  // namespace

PLIMSOLL_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return begin(stream, nullptr);
}

PLIMSOLL_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t*,
                                                       const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) {
  return begin(stream, from_handle(graph));
}

PLIMSOLL_API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  return with_stream(handle, [&](Stream& stream) {
    const std::optional<CaptureView> capture = machine().capture_of(stream);
    if (!capture) return cudaErrorIllegalState;
    if (!capture->is_origin) return cudaErrorStreamCaptureUnmatched;
    const auto captured = machine().end_capture(stream);
    if (!captured) return cudaErrorStreamCaptureInvalidated;
    *graph = to_handle(*captured);
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* out) {
  return with_stream(handle, [&](Stream& stream) {
    *out = status_of(machine().capture_of(stream));
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, t_mode);
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
PLIMSOLL_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* out,
                                                  unsigned long long* id, cudaGraph_t* graph,
                                                  const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                                  size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return capture_info(stream, out, id, graph, dependencies, count);
}

PLIMSOLL_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*,
                                                             size_t, unsigned) {
  return cudaSuccess;
}
#else
#undef cudaStreamGetCaptureInfo
PLIMSOLL_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* out,
                                                  unsigned long long* id) {
  return capture_info(stream, out, id, nullptr, nullptr, nullptr);
}

#undef cudaStreamGetCaptureInfo_v2
PLIMSOLL_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* out,
                                                     unsigned long long* id, cudaGraph_t* graph,
                                                     const cudaGraphNode_t** dependencies, size_t* count) {
  return capture_info(stream, out, id, graph, dependencies, count);
}

PLIMSOLL_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, size_t, unsigned) {
  return cudaSuccess;
}
#endif
