// Captures and graphs, node by node.

#include "pretend/cuda_program/program.h"

using namespace program;

namespace {

constexpr auto kMode = cudaStreamCaptureModeGlobal;

/// What a stream's capture says of itself.
struct Info {
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  std::vector<cudaGraphNode_t> ends;
};

Info info_of(cudaStream_t stream) {
  Info info;
  const cudaGraphNode_t* ends = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  REQUIRE(cudaStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &ends, nullptr, &count) == cudaSuccess);
#else
  REQUIRE(cudaStreamGetCaptureInfo_v2(stream, &info.status, &info.id, &info.graph, &ends, &count) == cudaSuccess);
#endif
  info.ends.assign(ends, ends + count);
  return info;
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
  std::vector<cudaGraphNode_t> nodes(count);
  REQUIRE(cudaGraphGetNodes(graph, nodes.data(), &count) == cudaSuccess);
  return nodes;
}

std::vector<cudaGraphNode_t> before(cudaGraphNode_t node) {
  cudaGraphNode_t found[8] = {};
  std::size_t count = 8;
#if CUDART_VERSION >= 13000
  REQUIRE(cudaGraphNodeGetDependencies(node, found, nullptr, &count) == cudaSuccess);
#else
  REQUIRE(cudaGraphNodeGetDependencies(node, found, &count) == cudaSuccess);
#endif
  return {found, found + count};
}

cudaGraph_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  return graph;
}

using Nodes = std::vector<cudaGraphNode_t>;

}  // namespace

TEST_CASE("a capture tells its id, its graph, and the node that comes before the next") {
  OwnStream stream;
  CHECK(info_of(stream).status == cudaStreamCaptureStatusNone);
  CHECK(info_of(stream).graph == nullptr);
  REQUIRE(cudaStreamBeginCapture(stream, kMode) == cudaSuccess);
  const Info empty = info_of(stream);
  CHECK(empty.status == cudaStreamCaptureStatusActive);
  CHECK(empty.ends.empty());
  REQUIRE(launch_on(stream) == cudaSuccess);
  REQUIRE(launch_on(stream) == cudaSuccess);
  const Info after = info_of(stream);
  CHECK(after.id == empty.id);
  CHECK(after.graph == empty.graph);
  const Nodes nodes = nodes_of(after.graph);
  REQUIRE(nodes.size() == 2);
  CHECK(after.ends == Nodes{nodes[1]});
  CHECK(before(nodes[1]) == Nodes{nodes[0]});
  CUstreamCaptureStatus of_driver{};
  CHECK(cuStreamIsCapturing(stream, &of_driver) == CUDA_SUCCESS);
  CHECK(of_driver == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  cudaGraph_t graph = end(stream);
  CHECK(graph == after.graph);
  REQUIRE(cudaStreamBeginCapture(stream, kMode) == cudaSuccess);
  CHECK(info_of(stream).id != after.id);
  cudaGraphDestroy(end(stream));
  cudaGraphDestroy(graph);
}

TEST_CASE("a capture that was broken says so until it is ended") {
  OwnStream stream;
  REQUIRE(cudaStreamBeginCapture(stream, kMode) == cudaSuccess);
  CHECK(fails_with(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream)));
  CHECK(info_of(stream).status == cudaStreamCaptureStatusInvalidated);
  cudaStreamCaptureStatus status{};
  CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  CHECK(fails_with(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph)));
  CHECK(info_of(stream).status == cudaStreamCaptureStatusNone);
  CHECK(fails_with(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph)));
}

TEST_CASE("callbacks, waiting for the card and the default stream have no place in a capture") {
  OwnStream stream;
  cudaGraph_t graph = nullptr;
  const auto breaks = [&](cudaError_t expected, const auto& call) {
    REQUIRE(cudaStreamBeginCapture(stream, kMode) == cudaSuccess);
    CHECK(fails_with(expected, call()));
    CHECK(fails_with(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph)));
  };
  const auto nothing = [](cudaStream_t, cudaError_t, void*) {};
  breaks(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamAddCallback(stream, nothing, nullptr, 0); });
  breaks(cudaErrorStreamCaptureUnsupported, [] { return cudaDeviceSynchronize(); });
  char host[2] = {};
  breaks(cudaErrorStreamCaptureImplicit, [&] { return cudaMemcpy(host, host + 1, 1, cudaMemcpyDefault); });
  CHECK(fails_with(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(nullptr, kMode)));
}

TEST_CASE("a capture mode is exchanged by its thread") {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeGlobal);
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeRelaxed);
}

TEST_CASE("a capture into a graph of the caller's adds to it") {
  OwnStream stream;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaGraphCreate(&graph, 0) == cudaSuccess);
  REQUIRE(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, kMode) == cudaSuccess);
  REQUIRE(launch_on(stream) == cudaSuccess);
  CHECK(end(stream) == graph);
  REQUIRE(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, kMode) == cudaSuccess);
  REQUIRE(launch_on(stream) == cudaSuccess);
  CHECK(end(stream) == graph);
  const Nodes nodes = nodes_of(graph);
  REQUIRE(nodes.size() == 2);
  CHECK(before(nodes[1]).empty());
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}
