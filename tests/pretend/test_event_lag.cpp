// A machine with an event lag: events complete some launches after the record.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) {
  setenv("PLIMSOLL_EVENT_LAG", "2", 1);
  return doctest::Context(argc, argv).run();
}

TEST_CASE("the time between two events is not ready until both have completed") {
  cudaEvent_t start = nullptr, end = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventRecord(start, nullptr) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(start) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, nullptr) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorNotReady);
  CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_NOT_READY);
  CHECK(milliseconds == -1);
  CHECK(cudaGetLastError() == cudaSuccess);
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds == 1.0F);
  CHECK(cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaEventDestroy(end) == cudaSuccess);
}

TEST_CASE("a thread that only polls, such as NCCL's watchdog, sees the event complete") {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, nullptr) == cudaSuccess);
  REQUIRE(cudaEventQuery(event) == cudaErrorNotReady);
  std::thread([&] {
    while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }).join();
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);  // This thread launched the work, so only launches count for it.
  CHECK(cudaEventDestroy(event) == cudaSuccess);
}
