// CUDA graphs. A launch reports the work of the graph. torch's allocator provides the memory, so memory is exact.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "plimsoll/pretend/runtime/graph_handles.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

PLIMSOLL_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = to_handle(new Graph);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return status(cudaErrorInvalidValue);
  delete from_handle(graph);
  return cudaSuccess;
}

#undef cudaGraphInstantiateWithFlags
PLIMSOLL_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                       unsigned long long) {
  if (graph == nullptr) return status(cudaErrorInvalidValue);
  *executable = to_executable(from_handle(graph)->clone().release());
  return cudaSuccess;
}

#undef cudaGraphInstantiate
PLIMSOLL_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                              unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

PLIMSOLL_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return status(cudaErrorInvalidValue);
  delete from_executable(executable);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

PLIMSOLL_API cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  if (executable == nullptr) return status(cudaErrorInvalidValue);
  return with_stream(handle, [&](Stream& stream) {
    machine().launch(*from_executable(executable), stream);
    return cudaSuccess;
  });
}

PLIMSOLL_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* out, size_t* count) {
  if (graph == nullptr || count == nullptr) return status(cudaErrorInvalidValue);
  const auto& nodes = from_handle(graph)->nodes();
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? to_handle(nodes[i].get()) : nullptr;
  }
  *count = nodes.size();
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return status(cudaErrorInvalidValue);
  std::fputs("digraph captured {\n", file);
  const auto& nodes = from_handle(graph)->nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::fprintf(file, "  n%zu [label=\"%s\"];\n", i, nodes[i]->name.c_str());
    for (const GraphNode* before : nodes[i]->dependencies) {
      const auto found =
          std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.get() == before; });
      std::fprintf(file, "  n%td -> n%zu;\n", found - nodes.begin(), i);
    }
  }
  std::fputs("}\n", file);
  std::fclose(file);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                                          unsigned, unsigned) {
  if (graph == nullptr) return status(cudaErrorInvalidValue);
  *handle = reinterpret_cast<cudaGraphConditionalHandle>(graph);
  return cudaSuccess;
}

namespace {

cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                     cudaGraphNodeParams* parameters) {
  if (graph == nullptr || parameters == nullptr) return status(cudaErrorInvalidValue);
  const bool conditional = parameters->type == cudaGraphNodeTypeConditional;
  if (!conditional && parameters->type != cudaGraphNodeTypeEmpty) return refused("cudaGraphAddNode with this type");
  const auto before = nodes_of(*from_handle(graph), dependencies, count);
  if (!before) return status(cudaErrorInvalidValue);
  const Event event{.kind = Happening::kCall, .name = conditional ? "conditional node" : "empty node"};
  GraphNode& node = from_handle(graph)->add(event, *before);
  if (conditional) {
    // No body runs: the value of the condition is on the device, which has no values.
    for (unsigned i = 0; i < std::max(parameters->conditional.size, 1U); ++i) {
      node.children.push_back(std::make_unique<Graph>());
      node.child_handles.push_back(node.children.back().get());
    }
    parameters->conditional.phGraph_out = reinterpret_cast<cudaGraph_t*>(node.child_handles.data());
  }
  *out = to_handle(&node);
  return cudaSuccess;
}

cudaError_t dependencies(cudaGraphNode_t node, cudaGraphNode_t* out, size_t* count) {
  if (node == nullptr || count == nullptr) return status(cudaErrorInvalidValue);
  const std::vector<GraphNode*>& found = from_handle(node)->dependencies;
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? to_handle(found[i]) : nullptr;
  }
  *count = found.size();
  return cudaSuccess;
}

}  // namespace

#if CUDART_VERSION >= 13000
PLIMSOLL_API cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                          const cudaGraphEdgeData* edges, size_t count,
                                          cudaGraphNodeParams* parameters) {
  if (!plain(edges, count)) return refused("cudaGraphAddNode with edge data");
  return add_node(node, graph, before, count, parameters);
}

PLIMSOLL_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out,
                                                      cudaGraphEdgeData* edges, size_t* count) {
  if (edges != nullptr && count != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
  return dependencies(node, out, count);
}
#else
PLIMSOLL_API cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                          size_t count, cudaGraphNodeParams* parameters) {
  return add_node(node, graph, before, count, parameters);
}

PLIMSOLL_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out, size_t* count) {
  return dependencies(node, out, count);
}
#endif
