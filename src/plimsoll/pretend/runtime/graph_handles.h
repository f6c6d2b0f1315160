#pragma once

#include <cuda_runtime_api.h>

#include "plimsoll/pretend/model/graph.h"

namespace plimsoll::pretend::runtime {

// CUDA's opaque handles are pointers to the model's objects.
inline cudaGraph_t to_handle(Graph* graph) { return reinterpret_cast<cudaGraph_t>(graph); }
inline Graph* from_handle(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
inline cudaGraphNode_t to_handle(GraphNode* node) { return reinterpret_cast<cudaGraphNode_t>(node); }
inline GraphNode* from_handle(cudaGraphNode_t handle) { return reinterpret_cast<GraphNode*>(handle); }
inline cudaGraphExec_t to_executable(Graph* graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }
inline Graph* from_executable(cudaGraphExec_t handle) { return reinterpret_cast<Graph*>(handle); }

}  // namespace plimsoll::pretend::runtime
