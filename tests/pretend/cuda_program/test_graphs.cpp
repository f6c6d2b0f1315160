// Captures and graphs, node by node.

#include "pretend/cuda_program/program.h"

namespace test_graphs {

using namespace program;

namespace {

constexpr auto kMode = cudaStreamCaptureModeGlobal;

/// The capture information of a stream.
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

cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const Nodes& dependencies, cudaGraphNodeParams& parameters) {
#if CUDART_VERSION >= 13000
  return cudaGraphAddNode(node, graph, dependencies.data(), nullptr, dependencies.size(), &parameters);
#else
  return cudaGraphAddNode(node, graph, dependencies.data(), dependencies.size(), &parameters);
#endif
}

cudaGraphNode_t add_empty(cudaGraph_t graph, const Nodes& dependencies = {}) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeEmpty;
  cudaGraphNode_t node = nullptr;
  REQUIRE(add(&node, graph, dependencies, parameters) == cudaSuccess);
  return node;
}

cudaError_t update(cudaStream_t stream, Nodes nodes, unsigned flags) {
#if CUDART_VERSION >= 13000
  return cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nullptr, nodes.size(), flags);
#else
  return cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nodes.size(), flags);
#endif
}

}  // namespace

TEST_CASE("a capture has an id, a graph and the node before the next one") {
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

TEST_CASE("a broken capture reports its state until it is ended") {
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

TEST_CASE("a capture refuses callbacks, waits for the card and the default stream") {
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

TEST_CASE("each thread exchanges its own capture mode") {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeGlobal);
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeRelaxed);
}

TEST_CASE("a capture into the caller's graph adds to it") {
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

TEST_CASE("a capture into a graph continues after the given nodes, if they belong to the graph") {
  OwnStream stream;
  cudaGraph_t graph = nullptr, other = nullptr;
  REQUIRE(cudaGraphCreate(&graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphCreate(&other, 0) == cudaSuccess);
  const cudaGraphNode_t first = add_empty(graph), foreign = add_empty(other);
  const auto begin = [&](cudaGraph_t into, const cudaGraphNode_t* after) {
    return cudaStreamBeginCaptureToGraph(stream, into, after, nullptr, 1, kMode);
  };
  CHECK(fails_with(cudaErrorInvalidValue, begin(graph, &foreign)));
  CHECK(fails_with(cudaErrorInvalidValue, begin(graph, nullptr)));
  CHECK(fails_with(cudaErrorInvalidValue, begin(nullptr, nullptr)));
  REQUIRE(begin(graph, &first) == cudaSuccess);
  CHECK(info_of(stream).ends == Nodes{first});
  REQUIRE(launch_on(stream) == cudaSuccess);
  CHECK(end(stream) == graph);
  CHECK(before(nodes_of(graph)[1]) == Nodes{first});
  cudaGraphDestroy(graph);
  cudaGraphDestroy(other);
}

TEST_CASE("the dependencies of captured work can be replaced and extended with nodes of its graph") {
  OwnStream stream;
  CHECK(fails_with(cudaErrorIllegalState, update(stream, {}, cudaStreamSetCaptureDependencies)));
  REQUIRE(cudaStreamBeginCapture(stream, kMode) == cudaSuccess);
  REQUIRE(launch_on(stream) == cudaSuccess);
  const Info first = info_of(stream);
  const cudaGraphNode_t own = add_empty(first.graph);
  REQUIRE(update(stream, {own}, cudaStreamAddCaptureDependencies) == cudaSuccess);
  CHECK(info_of(stream).ends == Nodes{first.ends[0], own});
  REQUIRE(update(stream, {own}, cudaStreamSetCaptureDependencies) == cudaSuccess);
  CHECK(info_of(stream).ends == Nodes{own});
  REQUIRE(launch_on(stream) == cudaSuccess);
  CHECK(before(info_of(stream).ends[0]) == Nodes{own});
  cudaGraph_t other = nullptr;
  REQUIRE(cudaGraphCreate(&other, 0) == cudaSuccess);
  CHECK(fails_with(cudaErrorInvalidValue, update(stream, {add_empty(other)}, cudaStreamSetCaptureDependencies)));
  CHECK(fails_with(cudaErrorInvalidValue, update(stream, {own}, 7)));
  cudaGraphDestroy(other);
  cudaGraphDestroy(end(stream));
}

TEST_CASE("an added node waits for the given nodes; an unimplemented kind fails by name") {
  cudaGraph_t graph = nullptr, other = nullptr;
  REQUIRE(cudaGraphCreate(&graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphCreate(&other, 0) == cudaSuccess);
  const cudaGraphNode_t first = add_empty(graph);
  const cudaGraphNode_t second = add_empty(graph);
  CHECK(before(add_empty(graph, {first, second})) == Nodes{first, second});
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeEmpty;
  cudaGraphNode_t node = nullptr;
  CHECK(fails_with(cudaErrorInvalidValue, add(&node, other, {first}, parameters)));
  parameters.type = cudaGraphNodeTypeMemset;
  CHECK(fails_with(cudaErrorNotSupported, add(&node, graph, {}, parameters)));
  CHECK(failed_by_name("cudaGraphAddNode with this type"));
  CHECK(nodes_of(graph).size() == 3);
  CHECK(nodes_of(other).empty());
  cudaGraphDestroy(graph);
  cudaGraphDestroy(other);
}

TEST_CASE("a conditional node has a body for each case, into which work is captured, and which no launch runs") {
  OwnStream stream, inner;
  REQUIRE(cudaStreamBeginCapture(stream, kMode) == cudaSuccess);
  REQUIRE(launch_on(stream) == cudaSuccess);
  const Info info = info_of(stream);
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  REQUIRE(cudaGraphConditionalHandleCreate(&parameters.conditional.handle, info.graph, 0, 0) == cudaSuccess);
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 2;
  cudaGraphNode_t node = nullptr, next = nullptr;
  REQUIRE(add(&node, info.graph, info.ends, parameters) == cudaSuccess);
  cudaGraph_t* const bodies = parameters.conditional.phGraph_out;
  cudaGraphNodeParams another = parameters;
  REQUIRE(add(&next, info.graph, {node}, another) == cudaSuccess);
  CHECK(before(node) == info.ends);
  CHECK(bodies[0] != bodies[1]);
  CHECK(another.conditional.phGraph_out[0] != bodies[0]);
  REQUIRE(update(stream, {next}, cudaStreamSetCaptureDependencies) == cudaSuccess);
  REQUIRE(cudaStreamBeginCaptureToGraph(inner, bodies[1], nullptr, nullptr, 0, kMode) == cudaSuccess);
  REQUIRE(launch_on(inner) == cudaSuccess);
  CHECK(end(inner) == bodies[1]);
  CHECK(nodes_of(bodies[0]).empty());
  CHECK(nodes_of(bodies[1]).size() == 1);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  const auto launches = control::work().launches;
  REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(control::work().launches == launches + 1);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_CASE("a capture with unjoined forks ends without a graph and releases its streams") {
  OwnStream origin, side;
  OwnEvent event;
  cudaGraph_t graph = nullptr;
  const auto fork = [&] {
    REQUIRE(cudaStreamBeginCapture(origin, kMode) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, origin) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(side, event, 0) == cudaSuccess);
    REQUIRE(launch_on(side) == cudaSuccess);
  };
  fork();
  CHECK(fails_with(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(side, &graph)));
  CHECK(fails_with(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(origin, &graph)));
  CHECK(graph == nullptr);
  CHECK(std::string(cudaGetErrorName(cudaErrorStreamCaptureUnjoined)) == "cudaErrorStreamCaptureUnjoined");
  CHECK(info_of(origin).status == cudaStreamCaptureStatusNone);
  CHECK(info_of(side).status == cudaStreamCaptureStatusNone);
  fork();
  REQUIRE(cudaEventRecord(event, side) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(origin, event, 0) == cudaSuccess);
  cudaGraphDestroy(end(origin));
}

TEST_CASE("a wait between two captures is refused and breaks both") {
  OwnStream one, other;
  OwnEvent event;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(one, kMode) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(other, kMode) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, one) == cudaSuccess);
  CHECK(fails_with(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(other, event, 0)));
  CHECK(cuStreamWaitEvent(other, event, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(fails_with(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(one, &graph)));
  CHECK(fails_with(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(other, &graph)));
}

}  // namespace test_graphs
