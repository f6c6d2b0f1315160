// Streams, events and host functions in stream order.

#include "pretend/cuda_program/program.h"

namespace test_streams {

using namespace program;

namespace {

void count_call(void* count) { ++*static_cast<int*>(count); }

}  // namespace

TEST_CASE("a stream's callback is called with the stream and its argument") {
  OwnStream stream;
  struct Call {
    cudaStream_t stream = nullptr;
    cudaError_t error = cudaErrorUnknown;
  } call;
  const auto note = [](cudaStream_t of, cudaError_t error, void* argument) {
    *static_cast<Call*>(argument) = {of, error};
  };
  REQUIRE(cudaStreamAddCallback(stream, note, &call, 0) == cudaSuccess);
  CHECK(call.stream == stream);
  CHECK(call.error == cudaSuccess);
}

TEST_CASE("a host function runs once, in stream order, and is reported") {
  OwnStream stream;
  int calls = 0;
  const auto reported =
      events_during(Happening::kCall, [&] { REQUIRE(cudaLaunchHostFunc(stream, count_call, &calls) == cudaSuccess); });
  CHECK(calls == 1);
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].name == "host function");
}

TEST_CASE("a stream has its flags, its device and a unique id") {
  const OnDevice on(3);
  cudaStream_t streams[2] = {};
  REQUIRE(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&streams[1]) == cudaSuccess);
  unsigned flags[2] = {7, 7};
  unsigned long long ids[2] = {};
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaStreamGetFlags(streams[i], &flags[i]) == cudaSuccess);
    CHECK(cudaStreamGetId(streams[i], &ids[i]) == cudaSuccess);
    CUcontext context = nullptr, current = nullptr;
    CHECK(cuStreamGetCtx(streams[i], &context) == CUDA_SUCCESS);
    CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
    CHECK(context == current);
#if CUDART_VERSION >= 12080
    int device = -1;
    CHECK(cudaStreamGetDevice(streams[i], &device) == cudaSuccess);
    CHECK(device == 3);
#endif
  }
  CHECK(flags[0] == cudaStreamNonBlocking);
  CHECK(flags[1] == cudaStreamDefault);
  CHECK(ids[0] != ids[1]);
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("neither the runtime nor the driver can destroy the default stream") {
  CHECK(fails_with(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr)));
  CHECK(cuStreamDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the time between two events is a millisecond in the runtime and in the driver") {
  OwnStream stream;
  OwnEvent start;
  OwnEvent end;
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  float of_runtime = 0, of_driver = 0;
  CHECK(cudaEventElapsedTime(&of_runtime, start, end) == cudaSuccess);
  CHECK(cuEventElapsedTime(&of_driver, start, end) == CUDA_SUCCESS);
  CHECK(of_runtime == 1.0F);
  CHECK(of_driver == of_runtime);
}

TEST_CASE("runtime and driver share streams and events, and both refuse a destroyed one") {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  const auto records = events_during(Happening::kRecord, [&] {
    CHECK(cuEventRecord(event, stream) == CUDA_SUCCESS);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  });
  REQUIRE(records.size() == 2);
  CHECK(records[0].event.stream == records[1].event.stream);
  CHECK(records[0].event.mark + 1 == records[1].event.mark);
  const auto waits = events_during(Happening::kWait, [&] {
    CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
    CHECK(cudaStreamWaitEvent(stream, event, 0) == cudaSuccess);
  });
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].event.mark == records[1].event.mark);
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  REQUIRE(cuEventDestroy(event) == CUDA_SUCCESS);
  REQUIRE(cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(fails_with(cudaErrorInvalidResourceHandle, cudaStreamQuery(stream)));
  CHECK(fails_with(cudaErrorInvalidResourceHandle, cudaEventQuery(event)));
}

TEST_CASE("an event without a record or without timing has no elapsed time") {
  OwnStream stream;
  OwnEvent recorded, never, untimed(cudaEventDisableTiming);
  REQUIRE(cudaEventRecord(recorded, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(untimed, stream) == cudaSuccess);
  float milliseconds = -1;
  const auto refused = [&](cudaEvent_t start, cudaEvent_t end) {
    CHECK(fails_with(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, end)));
    CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
  };
  refused(recorded, never);
  refused(never, recorded);
  refused(recorded, untimed);
  refused(untimed, recorded);
  refused(recorded, nullptr);
  CHECK(milliseconds == -1);
}

TEST_CASE("an event can be recorded only on its own card, and any stream can wait for it") {
  OwnEvent event;
  const OnDevice other(1);
  OwnStream elsewhere;
  const auto records = events_during(Happening::kRecord, [&] {
    CHECK(fails_with(cudaErrorInvalidResourceHandle, cudaEventRecord(event, elsewhere)));
    CHECK(fails_with(cudaErrorInvalidResourceHandle, cudaEventRecord(event, nullptr)));
    CHECK(cuEventRecord(event, elsewhere) == CUDA_ERROR_INVALID_HANDLE);
  });
  CHECK(records.empty());
  CHECK(cudaStreamWaitEvent(elsewhere, event, 0) == cudaSuccess);
}

TEST_CASE("a priority out of range becomes the nearest in range") {
  int least = -1, greatest = 1;
  REQUIRE(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess);
  CHECK(least == 0);
  CHECK(greatest < least);
  const auto given = [](int requested) {
    cudaStream_t of_runtime = nullptr;
    CUstream of_driver = nullptr;
    CHECK(cudaStreamCreateWithPriority(&of_runtime, cudaStreamNonBlocking, requested) == cudaSuccess);
    CHECK(cuStreamCreateWithPriority(&of_driver, CU_STREAM_NON_BLOCKING, requested) == CUDA_SUCCESS);
    int first = 100, second = 200;
    CHECK(cudaStreamGetPriority(of_runtime, &first) == cudaSuccess);
    CHECK(cudaStreamGetPriority(of_driver, &second) == cudaSuccess);
    CHECK(first == second);
    CHECK(cudaStreamDestroy(of_runtime) == cudaSuccess);
    CHECK(cuStreamDestroy(of_driver) == CUDA_SUCCESS);
    return first;
  };
  CHECK(given(least) == least);
  CHECK(given(-1) == -1);
  CHECK(given(greatest) == greatest);
  CHECK(given(greatest - 1) == greatest);
  CHECK(given(least + 1) == least);
}

}  // namespace test_streams
