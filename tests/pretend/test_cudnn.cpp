// cuDNN's face: descriptors, the graph interface, sizes.

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/machine.h"
#include "pretend/cudnn_handles.h"

extern "C" {
int cudnnGetStream(void*, void**);
std::size_t cudnnGetVersion();
int cudnnGetProperty(int, int*);
const char* cudnnGetErrorString(int);
int cudnnBackendCreateDescriptor(int, void**);
int cudnnBackendDestroyDescriptor(void*);
int cudnnBackendFinalize(void*);
int cudnnBackendSetAttribute(void*, int, int, std::int64_t, const void*);
int cudnnBackendGetAttribute(void*, int, int, std::int64_t, std::int64_t*, void*);
int cudnnBackendExecute(void*, void*, void*);
int cudnnSetTensorNdDescriptor(void*, int, int, const int*, const int*);
int cudnnSetTensor4dDescriptor(void*, int, int, int, int, int, int);
int cudnnGetTensorSizeInBytes(void*, std::size_t*);
int cudnnCreateFilterDescriptor(void**);
int cudnnDestroyFilterDescriptor(void*);
int cudnnSetFilterNdDescriptor(void*, int, int, int, const int*);
int cudnnGetFilterNdDescriptor(void*, int, int*, int*, int*, int*);
int cudnnCreateConvolutionDescriptor(void**);
int cudnnDestroyConvolutionDescriptor(void*);
int cudnnSetConvolutionNdDescriptor(void*, int, const int*, const int*, const int*, int, int);
int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void*, void*, int, int*, void*);
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t*);
int cudnnConvolutionForward(void*, ...);
int cudnnCreateCTCLossDescriptor(void**);
int cudnnDestroyCTCLossDescriptor(void*);
int cudnnSetCTCLossDescriptor_v9(void*, int, int, int, int);
int cudnnGetCTCLossWorkspaceSize_v8(void*, int, void*, void*, void*, std::size_t*);
}

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn_test;

namespace {

constexpr int kHalf = 2;
constexpr int kBackendTensor = 17;

struct Backend {
  explicit Backend(int type) { REQUIRE(cudnnBackendCreateDescriptor(type, &get) == 0); }
  ~Backend() { CHECK(cudnnBackendDestroyDescriptor(get) == 0); }
  Backend(const Backend&) = delete;
  void set(int name, const Backend& other) { REQUIRE(cudnnBackendSetAttribute(get, name, 15, 1, &other.get) == 0); }
  void finalize() { REQUIRE(cudnnBackendFinalize(get) == 0); }
  void* get = nullptr;
};

}  // namespace

TEST_CASE("a cuDNN handle takes its bytes while it lives") {
  const auto of_handles = [] { return control::memory(0).used_by[static_cast<int>(Reason::kHandles)]; };
  const plimsoll::Bytes before = of_handles();
  void* handle = nullptr;
  REQUIRE(cudnnCreate(&handle) == 0);
  CHECK(of_handles() == before + control::profile().cudnn_handle);
  CHECK(cudnnDestroy(handle) == 0);
  CHECK(of_handles() == before);
}

TEST_CASE("a null or foreign cuDNN handle is an error, not a crash") {
  void* stream = nullptr;
  std::uint64_t foreign[8] = {};
  CHECK(cudnnGetStream(nullptr, &stream) == kBadParam);
  CHECK(cudnnGetStream(foreign, &stream) == kBadParam);
  CHECK(cudnnBackendFinalize(foreign) == kBadParam);
  CHECK(cudnnConvolutionForward(nullptr) == kBadParam);
  CHECK(std::string(cudnnGetErrorString(kBadParam)) == "CUDNN_STATUS_BAD_PARAM");
}

TEST_CASE("both version functions of cuDNN agree") {
  int major = 0, minor = 0, patch = 0;
  REQUIRE(cudnnGetProperty(0, &major) == 0);
  REQUIRE(cudnnGetProperty(1, &minor) == 0);
  REQUIRE(cudnnGetProperty(2, &patch) == 0);
  CHECK(cudnnGetVersion() == static_cast<std::size_t>(major * 10000 + minor * 100 + patch));
  CHECK(major == 9);
  CHECK(cudnnGetProperty(3, &patch) == kBadParam);
}

TEST_CASE("a tensor descriptor returns its values") {
  Tensor tensor;
  const int sizes[] = {2, 3, 5}, strides[] = {15, 5, 1};
  REQUIRE(cudnnSetTensorNdDescriptor(tensor.get, kHalf, 3, sizes, strides) == 0);
  int type = -1, rank = 0, got_sizes[5] = {}, got_strides[5] = {};
  REQUIRE(cudnnGetTensorNdDescriptor(tensor.get, 5, &type, &rank, got_sizes, got_strides) == 0);
  CHECK(type == kHalf);
  CHECK(rank == 3);
  CHECK(std::memcmp(got_sizes, sizes, sizeof(sizes)) == 0);
  CHECK(std::memcmp(got_strides, strides, sizeof(strides)) == 0);
  std::size_t bytes = 0;
  REQUIRE(cudnnGetTensorSizeInBytes(tensor.get, &bytes) == 0);
  CHECK(bytes == 2 * 3 * 5 * 2);

  REQUIRE(cudnnSetTensor4dDescriptor(tensor.get, 1, kFloat, 2, 3, 4, 5) == 0);
  REQUIRE(cudnnGetTensorNdDescriptor(tensor.get, 4, &type, &rank, got_sizes, got_strides) == 0);
  CHECK(got_strides[0] == 60);
  CHECK(got_strides[1] == 1);
  CHECK(got_strides[2] == 15);
  CHECK(got_strides[3] == 3);

  const int nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, empty[] = {2, 0};
  CHECK(cudnnSetTensorNdDescriptor(tensor.get, kFloat, 9, nine, nine) == 3000);
  CHECK(cudnnSetTensorNdDescriptor(tensor.get, kFloat, 2, empty, strides) == kBadParam);
}

TEST_CASE("a filter descriptor returns its values") {
  Descriptor filter(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
  const int sizes[] = {16, 8, 3, 3};
  REQUIRE(cudnnSetFilterNdDescriptor(filter.get, kFloat, 1, 4, sizes) == 0);
  int type = -1, format = -1, rank = 0, got[4] = {};
  REQUIRE(cudnnGetFilterNdDescriptor(filter.get, 4, &type, &format, &rank, got) == 0);
  CHECK(format == 1);
  CHECK(rank == 4);
  CHECK(std::memcmp(got, sizes, sizeof(sizes)) == 0);
}

TEST_CASE("a convolution has one algorithm, with the workspace of the query") {
  struct Performance {
    int algorithm, status;
    float time;
    std::size_t memory;
    int determinism, math_type, reserved[3];
  };
  Handle handle;
  Descriptor convolution(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor);
  const int ones[] = {1, 1}, zeros[] = {0, 0};
  REQUIRE(cudnnSetConvolutionNdDescriptor(convolution.get, 2, zeros, ones, ones, 1, kFloat) == 0);
  CHECK(cudnnSetConvolutionNdDescriptor(convolution.get, 2, zeros, zeros, ones, 1, kFloat) == kBadParam);
  Performance found[4] = {};
  int count = 0;
  REQUIRE(cudnnGetConvolutionForwardAlgorithm_v7(handle.get, nullptr, nullptr, convolution.get, nullptr, 4, &count,
                                                 found) == 0);
  REQUIRE(count == 1);
  CHECK(found[0].status == 0);
  CHECK(found[0].determinism == 1);
  std::size_t workspace = 1;
  REQUIRE(cudnnGetConvolutionForwardWorkspaceSize(handle.get, nullptr, nullptr, convolution.get, nullptr,
                                                  found[0].algorithm, &workspace) == 0);
  CHECK(workspace == found[0].memory);
}

TEST_CASE("an operation graph leads to a plan that runs") {
  Handle handle;
  Backend plan(5), pack(16);
  {
    // The sources of the plan are destroyed before it runs, as with cudnn_frontend's builders.
    Backend operation(10), graph(15), heuristics(4), configuration(3);
    operation.finalize();
    graph.set(801, operation);
    REQUIRE(cudnnBackendSetAttribute(graph.get, 800, 0, 1, &handle.get) == 0);
    graph.finalize();
    std::int64_t engines = 0;
    REQUIRE(cudnnBackendGetAttribute(graph.get, 802, 3, 1, nullptr, &engines) == 0);
    CHECK(engines == 1);

    heuristics.set(201, graph);
    CHECK(cudnnBackendGetAttribute(heuristics.get, 202, 15, 0, nullptr, nullptr) == 2004);  // Not finalized.
    heuristics.finalize();
    std::int64_t results = 0;
    REQUIRE(cudnnBackendGetAttribute(heuristics.get, 202, 15, 0, &results, nullptr) == 0);
    REQUIRE(results == 1);
    REQUIRE(cudnnBackendGetAttribute(heuristics.get, 202, 15, 1, &results, &configuration.get) == 0);

    Backend engine(2);
    std::int64_t index = -1, notes = -1;
    REQUIRE(cudnnBackendGetAttribute(configuration.get, 300, 15, 1, nullptr, &engine.get) == 0);
    REQUIRE(cudnnBackendGetAttribute(engine.get, 1301, 3, 1, nullptr, &index) == 0);
    CHECK(index == 0);
    int note[10];
    REQUIRE(cudnnBackendGetAttribute(engine.get, 1303, 11, 10, &notes, note) == 0);
    CHECK(notes == 0);
    plan.set(401, configuration);
  }
  plan.finalize();
  std::int64_t workspace = -1;
  REQUIRE(cudnnBackendGetAttribute(plan.get, 402, 3, 1, nullptr, &workspace) == 0);
  CHECK(workspace == 0);
  CHECK(cudnnBackendGetAttribute(plan.get, 402, 23, 1, nullptr, &workspace) == 2010);  // Not an int32.

  CHECK(cudnnBackendExecute(handle.get, plan.get, pack.get) == 2004);
  pack.finalize();
  std::string name;
  const auto token = control::listen([&](const Event& event) {
    if (event.kind == Happening::kCall) name = event.name;
  });
  CHECK(cudnnBackendExecute(handle.get, plan.get, pack.get) == 0);
  control::stop_listening(token);
  CHECK(name == "cudnn convolution forward");
}

TEST_CASE("a finalized descriptor does not change, and an incomplete one is not finalized") {
  Backend plan(5), tensor(kBackendTensor), engine(2);
  CHECK(cudnnBackendFinalize(plan.get) == kBadParam);
  CHECK(cudnnBackendFinalize(engine.get) == kBadParam);
  const std::int64_t sizes[] = {2, 3};
  REQUIRE(cudnnBackendSetAttribute(tensor.get, 902, 3, 2, sizes) == 0);
  tensor.finalize();
  CHECK(cudnnBackendSetAttribute(tensor.get, 902, 3, 2, sizes) == 1001);
  std::int64_t count = 0, got[2] = {};
  REQUIRE(cudnnBackendGetAttribute(tensor.get, 902, 3, 2, &count, got) == 0);
  CHECK(count == 2);
  CHECK(got[1] == 3);
}

TEST_CASE("the loss's workspace grows with the descriptor's maximum label length") {
  Handle handle;
  Descriptor loss(cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor);
  Tensor probabilities;
  const int sizes[] = {50, 3, 20}, strides[] = {60, 20, 1};
  REQUIRE(cudnnSetTensorNdDescriptor(probabilities.get, kFloat, 3, sizes, strides) == 0);
  REQUIRE(cudnnSetCTCLossDescriptor_v9(loss.get, kFloat, 1, 0, 10) == 0);
  std::size_t bytes = 0;
  REQUIRE(cudnnGetCTCLossWorkspaceSize_v8(handle.get, 0, loss.get, probabilities.get, nullptr, &bytes) == 0);
  CHECK(bytes == 50 * 3 * (20 + 2 * 21) * sizeof(float));
}

TEST_CASE("threads use their own handles and descriptors concurrently, as forward and autograd do") {
  const auto of_handles = [] { return control::memory(0).used_by[static_cast<int>(Reason::kHandles)]; };
  const plimsoll::Bytes before = of_handles();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 100; ++round) {
        void *handle = nullptr, *tensor = nullptr, *operation = nullptr;
        std::size_t bytes = 0;
        const int sizes[] = {t + 1, 3, 5}, strides[] = {15, 5, 1};
        failures += cudnnCreate(&handle) != 0;
        failures += of_handles() < before + control::profile().cudnn_handle;
        failures += cudnnCreateTensorDescriptor(&tensor) != 0;
        failures += cudnnSetTensorNdDescriptor(tensor, kHalf, 3, sizes, strides) != 0;
        failures += cudnnGetTensorSizeInBytes(tensor, &bytes) != 0 || bytes != 2 * 15 * static_cast<std::size_t>(t + 1);
        failures += cudnnBackendCreateDescriptor(kBackendTensor, &operation) != 0;
        failures += cudnnBackendDestroyDescriptor(operation) != 0;
        failures += cudnnDestroyTensorDescriptor(tensor) != 0;
        failures += cudnnDestroy(handle) != 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(of_handles() == before);
}
