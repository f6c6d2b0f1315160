#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "plimsoll/pretend/model/streams/graph.h"

namespace plimsoll::pretend::runtime {

// CUDA's opaque handles are pointers to the model's objects.
inline cudaGraph_t to_handle(Graph* graph) { return reinterpret_cast<cudaGraph_t>(graph); }
inline Graph* from_handle(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
inline cudaGraphNode_t to_handle(GraphNode* node) { return reinterpret_cast<cudaGraphNode_t>(node); }
inline GraphNode* from_handle(cudaGraphNode_t handle) { return reinterpret_cast<GraphNode*>(handle); }
inline cudaGraphExec_t to_executable(Graph* graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }
inline Graph* from_executable(cudaGraphExec_t handle) { return reinterpret_cast<Graph*>(handle); }

/// The nodes behind handles. Nothing if the list is null or a node does not belong to `graph`.
inline std::optional<std::vector<GraphNode*>> nodes_of(const Graph& graph, const cudaGraphNode_t* handles,
                                                       std::size_t count) {
  if (handles == nullptr && count != 0) return std::nullopt;
  std::vector<GraphNode*> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    nodes.push_back(from_handle(handles[i]));
    if (!graph.contains(nodes.back())) return std::nullopt;
  }
  return nodes;
}

/// Whether all edges are plain ("after all of it"), the only kind that the model has.
inline bool plain(const cudaGraphEdgeData* edges, std::size_t count) {
  static constexpr cudaGraphEdgeData kPlain{};
  return edges == nullptr || std::all_of(edges, edges + count, [](const cudaGraphEdgeData& edge) {
           return std::memcmp(&edge, &kPlain, sizeof edge) == 0;
         });
}

}  // namespace plimsoll::pretend::runtime
