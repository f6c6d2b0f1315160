// The driver's devices and contexts. Its answers agree with the runtime's.

#include <cstring>

#include "pretend/cuda_program/program.h"

namespace test_driver {

using namespace program;

TEST_CASE("a card's properties are the profile's") {
  const auto& profile = control::profile();
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  CHECK(properties.name == profile.device_name);
  CHECK(properties.totalGlobalMem == profile.memory);
  CHECK(properties.major == profile.compute_major);
  CHECK(properties.minor == profile.compute_minor);
  CHECK(properties.multiProcessorCount == profile.multiprocessors);
  CHECK(properties.sharedMemPerBlock == profile.shared_per_block);
  CHECK(properties.sharedMemPerBlockOptin == profile.shared_per_block_optin);
  CHECK(properties.sharedMemPerMultiprocessor == profile.shared_per_multiprocessor);
  CHECK(properties.regsPerMultiprocessor == profile.registers_per_multiprocessor);
  CHECK(properties.maxThreadsPerMultiProcessor == profile.threads_per_multiprocessor);
  CHECK(properties.maxBlocksPerMultiProcessor == profile.blocks_per_multiprocessor);
  CHECK(properties.l2CacheSize == static_cast<int>(profile.l2_cache));
  CHECK(properties.memoryBusWidth == profile.memory_bus_bits);
  CHECK(fails_with(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, control::device_count())));
}

TEST_CASE("properties, the runtime's attributes and the driver's attributes agree") {
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 2) == cudaSuccess);
  const auto attribute = [](int which) {
    int of_runtime = -1, of_driver = -2;
    CHECK(cudaDeviceGetAttribute(&of_runtime, static_cast<cudaDeviceAttr>(which), 2) == cudaSuccess);
    CHECK(cuDeviceGetAttribute(&of_driver, static_cast<CUdevice_attribute>(which), 2) == CUDA_SUCCESS);
    CHECK(of_runtime == of_driver);
    return of_driver;
  };
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == properties.major);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == properties.minor);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == properties.multiProcessorCount);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == properties.maxThreadsPerBlock);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) == properties.maxThreadsDim[2]);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) == properties.maxGridSize[0]);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == properties.warpSize);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) == properties.l2CacheSize);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) == properties.pciBusID);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == properties.clusterLaunch);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == properties.memoryPoolsSupported);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) ==
        static_cast<int>(properties.sharedMemPerBlockOptin));
}

TEST_CASE("runtime and driver agree on a card's name, identifier, bus, memory and version") {
  int of_runtime = 0, of_driver = -1;
  CHECK(cudaGetDeviceCount(&of_runtime) == cudaSuccess);
  CHECK(cuDeviceGetCount(&of_driver) == CUDA_SUCCESS);
  CHECK(of_runtime == of_driver);
  CHECK(cudaDriverGetVersion(&of_runtime) == cudaSuccess);
  CHECK(cuDriverGetVersion(&of_driver) == CUDA_SUCCESS);
  CHECK(of_runtime == of_driver);
  CUdevice device = -1;
  REQUIRE(cuDeviceGet(&device, 1) == CUDA_SUCCESS);
  CHECK(cuDeviceGet(&device, control::device_count()) == CUDA_ERROR_INVALID_DEVICE);
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  char name[256] = {};
  CUuuid uuid{};
  std::size_t bytes = 0;
  CHECK(cuDeviceGetName(name, sizeof name, 1) == CUDA_SUCCESS);
  CHECK(cuDeviceGetUuid(&uuid, 1) == CUDA_SUCCESS);
  CHECK(cuDeviceTotalMem(&bytes, 1) == CUDA_SUCCESS);
  CHECK(std::string(name) == properties.name);
  CHECK(std::memcmp(uuid.bytes, properties.uuid.bytes, sizeof uuid.bytes) == 0);
  CHECK(bytes == properties.totalGlobalMem);
  char bus[2][32] = {};
  CHECK(cudaDeviceGetPCIBusId(bus[0], sizeof bus[0], 1) == cudaSuccess);
  CHECK(cuDeviceGetPCIBusId(bus[1], sizeof bus[1], 1) == CUDA_SUCCESS);
  CHECK(std::string(bus[0]) == bus[1]);
  CHECK(cudaDeviceGetByPCIBusId(&of_runtime, bus[0]) == cudaSuccess);
  CHECK(of_runtime == 1);
  CHECK(fails_with(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&of_runtime, "0000:77:00.0")));
}

TEST_CASE("a primary context is created once, takes memory of the card, and stays") {
  unsigned flags = 7;
  int active = -1;
  REQUIRE(cuDevicePrimaryCtxGetState(3, &flags, &active) == CUDA_SUCCESS);
  const auto before = control::memory(3).used;
  CUcontext first = nullptr, second = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&first, 3) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&second, 3) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(control::memory(3).used == before + (active != 0 ? 0 : control::profile().context));
  REQUIRE(cuDevicePrimaryCtxGetState(3, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  CHECK(cuDevicePrimaryCtxRelease(3) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&first, control::device_count()) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("the current context is that of the runtime's current device, and a pop restores it") {
  const OnDevice on(0);
  CUcontext of_zero = nullptr, of_two = nullptr, current = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&of_zero, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&of_two, 2) == CUDA_SUCCESS);
  CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == of_zero);
  int runtime_device = -1;
  CUdevice driver_device = -2;
  REQUIRE(cuCtxPushCurrent(of_two) == CUDA_SUCCESS);
  CHECK(cudaGetDevice(&runtime_device) == cudaSuccess);
  CHECK(cuCtxGetDevice(&driver_device) == CUDA_SUCCESS);
  CHECK(runtime_device == 2);
  CHECK(driver_device == 2);
  REQUIRE(cuCtxPopCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == of_two);
  CHECK(cudaGetDevice(&runtime_device) == cudaSuccess);
  CHECK(runtime_device == 0);
  CHECK(cuCtxPopCurrent(&current) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(cuCtxSetCurrent(of_two) == CUDA_SUCCESS);
  CHECK(cudaGetDevice(&runtime_device) == cudaSuccess);
  CHECK(runtime_device == 2);
}

TEST_CASE("a wait for a context is reported as a wait for its card") {
  const OnDevice on(1);
  const auto waits = events_during(Happening::kSynchronize, [] { CHECK(cuCtxSynchronize() == CUDA_SUCCESS); });
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].event.device == 1);
}

TEST_CASE("driver and runtime count the same memory, and both can free it") {
  const auto before = control::memory(0).used;
  CUdeviceptr pointer = 0, base = 0;
  std::size_t bytes = 0;
  REQUIRE(cuMemAlloc(&pointer, 5_MiB) == CUDA_SUCCESS);
  CHECK(control::memory(0).used == before + 6_MiB);  // In pieces of 2 MiB.
  REQUIRE(cuMemGetAddressRange(&base, &bytes, pointer + 100) == CUDA_SUCCESS);
  CHECK(base == pointer);
  CHECK(bytes >= 5_MiB);
  std::size_t free_of_runtime = 0, free_of_driver = 1, total = 0;
  CHECK(cudaMemGetInfo(&free_of_runtime, &total) == cudaSuccess);
  CHECK(cuMemGetInfo(&free_of_driver, &total) == CUDA_SUCCESS);
  CHECK(free_of_runtime == free_of_driver);
  CHECK(cudaFree(reinterpret_cast<void*>(pointer)) == cudaSuccess);
  CHECK(cuMemFree(pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(control::memory(0).used == before);
  CHECK(cuMemAlloc(&pointer, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&pointer, control::profile().memory) == CUDA_ERROR_OUT_OF_MEMORY);
  const auto pinned = control::host().pinned;
  void* host = nullptr;
  REQUIRE(cuMemHostAlloc(&host, 100, 0) == CUDA_SUCCESS);
  CHECK(control::host().pinned == pinned + 100);
  CHECK(cudaFreeHost(host) == cudaSuccess);
  CHECK(cuMemFreeHost(host) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the driver's fills are reported with their bytes, and its read-backs write zeros") {
  CUdeviceptr device = 0;
  REQUIRE(cuMemAlloc(&device, 1_MiB) == CUDA_SUCCESS);
  const auto fills = events_during(Happening::kFill, [&] {
    CHECK(cuMemsetD8Async(device, 1, 100, nullptr) == CUDA_SUCCESS);
    CHECK(cuMemsetD32Async(device, 1, 100, nullptr) == CUDA_SUCCESS);
    CHECK(cuMemsetD32(device, 1, 25) == CUDA_SUCCESS);
  });
  REQUIRE(fills.size() == 3);
  CHECK(fills[0].event.bytes == 100);
  CHECK(fills[1].event.bytes == 400);
  CHECK(fills[2].event.bytes == 100);
  int value = 42;
  const auto before = control::work().read_backs;
  REQUIRE(cuMemcpyDtoH(&value, device, sizeof value) == CUDA_SUCCESS);
  CHECK(value == 0);
  CHECK(control::work().read_backs == before + 1);
  CHECK(cuMemFree(device) == CUDA_SUCCESS);
}

TEST_CASE("an entry point is found in its newest version; an unknown one is reported as missing") {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result{};
  CHECK(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &result) == CUDA_SUCCESS);
  CHECK(result == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(function == reinterpret_cast<void*>(&cuMemAlloc_v2));
  CHECK(cuGetProcAddress("cuNoSuchThing", &function, 12000, 0, &result) == CUDA_ERROR_NOT_FOUND);
  CHECK(result == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(function == nullptr);
}

TEST_CASE("limits and flags have the last value that the runtime or the driver set") {
  std::size_t of_runtime = 0, of_driver = 1;
  const auto agree = [&](std::size_t expected) {
    CHECK(cudaDeviceGetLimit(&of_runtime, cudaLimitStackSize) == cudaSuccess);
    CHECK(cuCtxGetLimit(&of_driver, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
    CHECK(of_runtime == expected);
    CHECK(of_driver == expected);
  };
  agree(1024);
  REQUIRE(cudaDeviceSetLimit(cudaLimitStackSize, 4096) == cudaSuccess);
  agree(4096);
  REQUIRE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024) == CUDA_SUCCESS);
  agree(1024);
  REQUIRE(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) == cudaSuccess);
  unsigned flags[2] = {};
  int active = 0;
  CHECK(cudaGetDeviceFlags(&flags[0]) == cudaSuccess);
  CHECK(cuDevicePrimaryCtxGetState(0, &flags[1], &active) == CUDA_SUCCESS);
  CHECK(flags[0] == cudaDeviceScheduleBlockingSync);
  CHECK(flags[1] == flags[0]);
  REQUIRE(cudaSetDeviceFlags(0) == cudaSuccess);
}

TEST_CASE("the driver's copies are reported with source and destination") {
  CUdeviceptr device = 0;
  REQUIRE(cuMemAlloc(&device, 1_MiB) == CUDA_SUCCESS);
  int value = 42;
  const auto copies =
      events_during(Happening::kCopy, [&] { CHECK(cuMemcpyHtoD(device, &value, sizeof value) == CUDA_SUCCESS); });
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].event.source == &value);
  CHECK(copies[0].event.destination == reinterpret_cast<void*>(device));
  CHECK(copies[0].event.bytes == sizeof value);
  const auto read_backs =
      events_during(Happening::kReadBack, [&] { CHECK(cuMemcpyDtoH(&value, device, sizeof value) == CUDA_SUCCESS); });
  REQUIRE(read_backs.size() == 1);
  CHECK(read_backs[0].event.source == reinterpret_cast<void*>(device));
  CHECK(cuMemFree(device) == CUDA_SUCCESS);
}

TEST_CASE("the driver's asynchronous copies run on their stream") {
  OwnStream stream;
  CUdeviceptr device = 0;
  REQUIRE(cuMemAlloc(&device, 1_MiB) == CUDA_SUCCESS);
  int value = 42;
  const auto copies = events_during(Happening::kCopy, [&] {
    CHECK(cuMemcpyHtoDAsync(device, &value, sizeof value, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyDtoDAsync(device + 512, device, 512, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyAsync(device + 512, device, 256, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyDtoD(device + 512, device, 128) == CUDA_SUCCESS);
    CHECK(cuMemcpy(device + 512, device, 64) == CUDA_SUCCESS);
  });
  REQUIRE(copies.size() == 5);
  CHECK(copies[1].event.bytes == 512);
  CHECK(copies[0].event.stream == copies[2].event.stream);
  CHECK(copies[0].event.stream != copies[3].event.stream);
  CHECK(cuMemcpyDtoHAsync(&value, device, sizeof value, stream) == CUDA_SUCCESS);
  CHECK(value == 0);
  CHECK(cuMemsetD8(device, 1, 100) == CUDA_SUCCESS);
  CHECK(cuMemFree(device) == CUDA_SUCCESS);
}

TEST_CASE("stream writes of the driver reach pinned memory") {
  unsigned* pinned = nullptr;
  REQUIRE(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 16, 0) == CUDA_SUCCESS);
  const auto address = reinterpret_cast<CUdeviceptr>(pinned);
  CHECK(cuMemsetD32Async(address, 0x01020304, 4, nullptr) == CUDA_SUCCESS);
  CHECK(pinned[3] == 0x01020304);
  CHECK(cuMemsetD8Async(address, 0xFF, 4, nullptr) == CUDA_SUCCESS);
  CHECK(pinned[0] == 0xFFFFFFFF);
  CHECK(cuStreamWriteValue32(nullptr, address + 4, 7, 0) == CUDA_SUCCESS);
  CHECK(pinned[1] == 7);
  unsigned back = 0;
  CHECK(cuMemcpyDtoH(&back, address + 4, sizeof back) == CUDA_SUCCESS);
  CHECK(back == 7);
  CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
  CHECK(cuMemsetD32Async(address, 1, 4, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the same calls break a capture in the runtime and in the driver") {
  OwnStream stream;
  const auto breaks = [&](CUresult expected, const auto& call) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(call() == expected);
    cudaGraph_t graph = nullptr;
    CHECK(fails_with(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph)));
  };
  int value = 0;
  CUdeviceptr device = 0;
  REQUIRE(cuMemAlloc(&device, 4) == CUDA_SUCCESS);
  breaks(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamQuery(stream); });
  breaks(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamSynchronize(stream); });
  breaks(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [] { return cuCtxSynchronize(); });
  breaks(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, [&] { return cuMemcpyHtoD(device, &value, 4); });
  breaks(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, [&] { return cuMemcpyDtoH(&value, device, 4); });
  CHECK(cuMemFree(device) == CUDA_SUCCESS);
}

}  // namespace test_driver
