// The cost of a call into the pretend GPU, on one core.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include "plimsoll/pretend/model/control.h"

namespace {

void kernel_stub() {}

void launch(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_stub), dim3(1), dim3(1), nullptr, 0, nullptr));
  }
}
BENCHMARK(launch)->Name("a launch without a listener");

void launch_heard(benchmark::State& state) {
  const auto token = plimsoll::pretend::control::listen([](const plimsoll::pretend::Event&) {});
  launch(state);
  plimsoll::pretend::control::stop_listening(token);
}
BENCHMARK(launch_heard)->Name("a launch with a listener");

void allocate(benchmark::State& state) {
  for (auto _ : state) {
    void* pointer = nullptr;
    cudaMalloc(&pointer, 2 << 20);
    cudaFree(pointer);
  }
}
BENCHMARK(allocate)->Name("cudaMalloc and cudaFree");

void event(benchmark::State& state) {
  cudaEvent_t mark = nullptr;
  cudaEventCreateWithFlags(&mark, cudaEventDisableTiming);
  for (auto _ : state) {
    cudaEventRecord(mark, nullptr);
    benchmark::DoNotOptimize(cudaEventQuery(mark));
  }
  cudaEventDestroy(mark);
}
BENCHMARK(event)->Name("an event recorded and asked for");

}  // namespace

BENCHMARK_MAIN();
