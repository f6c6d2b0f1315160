// Stream capture: the work of a stream becomes a graph.

#include <algorithm>
#include <utility>

#include "plimsoll/pretend/runtime/graph_handles.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

namespace {

/// Stored for the getter, otherwise without effect. The calls that a mode forbids are harmless here, and torch relaxes
/// the mode for its allocations during a capture.
thread_local cudaStreamCaptureMode t_mode = cudaStreamCaptureModeGlobal;

cudaError_t begin(cudaStream_t handle, Graph* into, const std::vector<GraphNode*>& ends) {
  return with_stream(handle, [&](Stream& stream) {
    if (stream.id == 0) return cudaErrorStreamCaptureUnsupported;
    return machine().begin_capture(stream, into, ends) ? cudaSuccess : cudaErrorIllegalState;
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
    // Valid until the thread's next call, as in CUDA.
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

cudaError_t update_dependencies(cudaStream_t handle, const cudaGraphNode_t* nodes, size_t count, unsigned flags) {
  return with_stream(handle, [&](Stream& stream) {
    const std::optional<CaptureView> capture = machine().capture_of(stream);
    if (!capture) return cudaErrorIllegalState;
    if (!capture->active) return cudaErrorStreamCaptureInvalidated;
    const auto given = nodes_of(*capture->graph, nodes, count);
    if (!given || flags > cudaStreamSetCaptureDependencies) return cudaErrorInvalidValue;
    std::vector<GraphNode*> ends;
    if (flags == cudaStreamAddCaptureDependencies) ends = capture->ends;
    for (GraphNode* node : *given) {
      if (std::find(ends.begin(), ends.end(), node) == ends.end()) ends.push_back(node);
    }
    return machine().set_capture_ends(stream, std::move(ends)) ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
  });
}

}  // namespace

PLIMSOLL_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return begin(stream, nullptr, {});
}

PLIMSOLL_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                       const cudaGraphNode_t* dependencies,
                                                       const cudaGraphEdgeData* edges, size_t count,
                                                       cudaStreamCaptureMode) {
  if (graph == nullptr) return status(cudaErrorInvalidValue);
  if (!plain(edges, count)) return refused("cudaStreamBeginCaptureToGraph with edge data");
  const auto ends = nodes_of(*from_handle(graph), dependencies, count);
  return ends ? begin(stream, from_handle(graph), *ends) : status(cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  return with_stream(handle, [&](Stream& stream) {
    const EndedCapture ended = machine().end_capture(stream);
    switch (ended.how) {
      case EndedCapture::How::kNotCaptured:
        return cudaErrorIllegalState;
      case EndedCapture::How::kNotOrigin:
        return cudaErrorStreamCaptureUnmatched;
      case EndedCapture::How::kInvalidated:
        return cudaErrorStreamCaptureInvalidated;
      case EndedCapture::How::kUnjoined:
        return cudaErrorStreamCaptureUnjoined;
      case EndedCapture::How::kDone:
        *graph = to_handle(ended.graph);
    }
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

PLIMSOLL_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                             const cudaGraphEdgeData* edges, size_t count,
                                                             unsigned flags) {
  if (!plain(edges, count)) return refused("cudaStreamUpdateCaptureDependencies with edge data");
  return update_dependencies(stream, dependencies, count, flags);
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

PLIMSOLL_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                             size_t count, unsigned flags) {
  return update_dependencies(stream, dependencies, count, flags);
}
#endif
