// A machine of cards without peer access.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "plimsoll/pretend/model/control.h"

namespace control = plimsoll::pretend::control;

int main(int argc, char** argv) {
  setenv("PLIMSOLL_GPU_PROFILE", PLIMSOLL_SOURCE_DIR "/src/plimsoll/pretend/profiles/RTX-4090-24GB.json", 1);
  setenv("PLIMSOLL_GPUS", "2", 1);
  return doctest::Context(argc, argv).run();
}

TEST_CASE("runtime and driver report no peer access between cards") {
  REQUIRE_FALSE(control::profile().peer_access);
  REQUIRE(control::device_count() == 2);
  int of_runtime = 1, of_driver = 1;
  CHECK(cudaDeviceCanAccessPeer(&of_runtime, 0, 1) == cudaSuccess);
  CHECK(cuDeviceCanAccessPeer(&of_driver, 0, 1) == CUDA_SUCCESS);
  CHECK(of_runtime == 0);
  CHECK(of_driver == 0);
}

TEST_CASE("a card of capability 8.9 runs torch's code for 8.6") {
  REQUIRE(control::profile().compute_minor == 9);
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, nullptr) == cudaSuccess);
  CHECK(attributes.binaryVersion == 86);
  CHECK(attributes.ptxVersion == 86);
}

TEST_CASE("a request for peer access is refused and enables nothing") {
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported);
  CHECK(std::string(cudaGetErrorName(cudaGetLastError())) == "cudaErrorPeerAccessUnsupported");
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  cudaGetLastError();
}

TEST_CASE("mapped memory and pools cannot be opened to a card without peer access") {
  CUdeviceptr range = 0;
  REQUIRE(cuMemAddressReserve(&range, 2 << 20, 0, 0, 0) == CUDA_SUCCESS);
  CUmemAccessDesc mapped{};
  mapped.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CHECK(cuMemSetAccess(range, 2 << 20, &mapped, 1) == CUDA_SUCCESS);
  mapped.location.id = 1;
  CHECK(cuMemSetAccess(range, 2 << 20, &mapped, 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuMemAddressFree(range, 2 << 20) == CUDA_SUCCESS);
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  cudaMemAccessDesc pooled{};
  pooled.location.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemPoolSetAccess(pool, &pooled, 1) == cudaSuccess);
  pooled.location.id = 1;
  CHECK(cudaMemPoolSetAccess(pool, &pooled, 1) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST_CASE("a copy between cards needs no peer access: it goes through the host") {
  void* source = nullptr;
  void* destination = nullptr;
  REQUIRE(cudaMalloc(&source, 100) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaMalloc(&destination, 100) == cudaSuccess);
  CHECK(cudaMemcpyPeer(destination, 1, source, 0, 100) == cudaSuccess);
  CHECK(cudaFree(destination) == cudaSuccess);
  CHECK(cudaFree(source) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}
