// Kernels: every way to launch one, its attributes, and its modules.

#include "pretend/cuda_program/program.h"

namespace test_launch {

using namespace program;

namespace {

constexpr unsigned kShared = 64;

/// Checks the report of a launch with grid (2, 3, 4), block (128, 2, 1) and `kShared` bytes.
void check_launch(const std::vector<Recorder::Entry>& entries, const std::string& name, std::uint64_t stream) {
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == name);
  const auto& event = entries[0].event;
  CHECK(std::vector<unsigned>(event.grid, event.grid + 3) == std::vector<unsigned>{2, 3, 4});
  CHECK(std::vector<unsigned>(event.block, event.block + 3) == std::vector<unsigned>{128, 2, 1});
  CHECK(event.shared == kShared);
  CHECK(event.stream == stream);
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  REQUIRE(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
  return function;
}

CUfunction driver_function(const char* name) {
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
  return function_of(module, name);
}

}  // namespace

TEST_CASE("launches with a configuration and cooperative launches are reported as ordinary launches") {
  OwnStream stream;
  unsigned long long id = 0;
  REQUIRE(cudaStreamGetId(stream, &id) == cudaSuccess);
  check_launch(events_during(Happening::kLaunch,
                             [&] {
                               cudaLaunchConfig_t config{};
                               config.gridDim = dim3(2, 3, 4);
                               config.blockDim = dim3(128, 2);
                               config.dynamicSmemBytes = kShared;
                               config.stream = stream;
                               CHECK(cudaLaunchKernelExC(&config, kernel(), nullptr) == cudaSuccess);
                             }),
               "program_kernel", id);
  check_launch(events_during(Happening::kLaunch,
                             [&] {
                               CHECK(cudaLaunchCooperativeKernel(kernel(), dim3(2, 3, 4), dim3(128, 2), nullptr,
                                                                 kShared, stream) == cudaSuccess);
                             }),
               "program_kernel", id);
  CHECK(fails_with(cudaErrorInvalidConfiguration, cudaLaunchKernelExC(nullptr, kernel(), nullptr)));
}

TEST_CASE("the driver's launches are reported with the requested name of the function") {
  OwnStream stream;
  unsigned long long id = 0;
  REQUIRE(cudaStreamGetId(stream, &id) == cudaSuccess);
  const CUfunction function = driver_function("triton_kernel");
  check_launch(events_during(Happening::kLaunch,
                             [&] {
                               CHECK(cuLaunchKernel(function, 2, 3, 4, 128, 2, 1, kShared, stream, nullptr, nullptr) ==
                                     CUDA_SUCCESS);
                             }),
               "triton_kernel", id);
  check_launch(events_during(Happening::kLaunch,
                             [&] {
                               CHECK(cuLaunchCooperativeKernel(function, 2, 3, 4, 128, 2, 1, kShared, stream,
                                                               nullptr) == CUDA_SUCCESS);
                             }),
               "triton_kernel", id);
  check_launch(events_during(Happening::kLaunch,
                             [&] {
                               CUlaunchConfig config{};
                               config.gridDimX = 2;
                               config.gridDimY = 3;
                               config.gridDimZ = 4;
                               config.blockDimX = 128;
                               config.blockDimY = 2;
                               config.blockDimZ = 1;
                               config.sharedMemBytes = kShared;
                               config.hStream = stream;
                               CHECK(cuLaunchKernelEx(&config, function, nullptr, nullptr) == CUDA_SUCCESS);
                             }),
               "triton_kernel", id);
}

TEST_CASE("runtime and driver refuse a launch on a destroyed stream and do not count it") {
  cudaStream_t stale = nullptr;
  REQUIRE(cudaStreamCreate(&stale) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stale) == cudaSuccess);
  const auto before = control::work().launches;
  CHECK(fails_with(cudaErrorInvalidResourceHandle, launch_on(stale)));
  const CUfunction function = driver_function("stale");
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stale, nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(control::work().launches == before);
}

TEST_CASE("threads, shared memory and a limit decide how many blocks fit on a multiprocessor") {
  const auto& profile = control::profile();
  const CUfunction function = driver_function("occupied");
  const auto blocks = [&](int threads, std::size_t shared) {
    int of_runtime = -1, of_flags = -2, of_driver = -3;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_runtime, kernel(), threads, shared) == cudaSuccess);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&of_flags, kernel(), threads, shared, 0) ==
          cudaSuccess);
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_driver, function, threads, shared) == CUDA_SUCCESS);
    CHECK(of_runtime == of_driver);
    CHECK(of_runtime == of_flags);
    return of_runtime;
  };
  CHECK(blocks(256, 0) == profile.threads_per_multiprocessor / 256);
  CHECK(blocks(1024, 0) == profile.threads_per_multiprocessor / 1024);
  CHECK(blocks(1, 0) == profile.blocks_per_multiprocessor);
  CHECK(blocks(32, profile.shared_per_block_optin) == 1);
  int of_runtime = -1, of_driver = -2;
  CHECK(cudaOccupancyMaxActiveClusters(&of_runtime, kernel(), nullptr) == cudaSuccess);
  CHECK(cuOccupancyMaxActiveClusters(&of_driver, function, nullptr) == CUDA_SUCCESS);
  CHECK(of_runtime == of_driver);
}

TEST_CASE("runtime and driver agree on a kernel's attributes") {
  const CUfunction function = driver_function("asked");
  const auto of_driver = [&](CUfunction_attribute attribute) {
    int value = -1;
    CHECK(cuFuncGetAttribute(&value, attribute, function) == CUDA_SUCCESS);
    return value;
  };
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, kernel()) == cudaSuccess);
  const auto& profile = control::profile();
  CHECK(attributes.binaryVersion == profile.compute_major * 10 + profile.compute_minor);
  CHECK(attributes.binaryVersion == of_driver(CU_FUNC_ATTRIBUTE_BINARY_VERSION));
  CHECK(attributes.ptxVersion == of_driver(CU_FUNC_ATTRIBUTE_PTX_VERSION));
  CHECK(attributes.maxThreadsPerBlock == of_driver(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  CHECK(attributes.numRegs == of_driver(CU_FUNC_ATTRIBUTE_NUM_REGS));
  CHECK(attributes.maxDynamicSharedSizeBytes == of_driver(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  CHECK(attributes.sharedSizeBytes == static_cast<std::size_t>(of_driver(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)));
}

TEST_CASE("a kernel can have the shared memory of a block with opt-in, and not a byte more") {
  const CUfunction function = driver_function("needs_shared");
  const int most = static_cast<int>(control::profile().shared_per_block_optin);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CHECK(cudaFuncSetAttribute(kernel(), attribute, most) == cudaSuccess);
  CHECK(fails_with(cudaErrorInvalidValue, cudaFuncSetAttribute(kernel(), attribute, most + 1)));
  CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most) == CUDA_SUCCESS);
  CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a kernel of a loaded library is launched by its name") {
  CUlibrary library = nullptr;
  CUkernel loaded = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuLibraryLoadData(&library, "image", nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(cuLibraryGetKernel(&loaded, library, "of_library") == CUDA_SUCCESS);
  REQUIRE(cuKernelGetFunction(&function, loaded) == CUDA_SUCCESS);
  const auto launches = events_during(Happening::kLaunch, [&] {
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  });
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].name == "of_library");
  CHECK(cuLibraryUnload(library) == CUDA_SUCCESS);
}

TEST_CASE("a module's variable has one address on each card, found by its name") {
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadDataEx(&module, "image", 0, nullptr, nullptr) == CUDA_SUCCESS);
  const auto place = [&](const char* name) {
    CUdeviceptr pointer = 0;
    std::size_t bytes = 0;
    CHECK(cuModuleGetGlobal(&pointer, &bytes, module, name) == CUDA_SUCCESS);
    CHECK(bytes > 0);
    return pointer;
  };
  const CUdeviceptr first = place("first");
  CHECK(place("first") == first);
  CHECK(place("second") != first);
  const OnDevice other(1);
  CHECK(place("first") != first);
  int device = -1;
  CHECK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, place("first")) == CUDA_SUCCESS);
  CHECK(device == 1);
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
}

}  // namespace test_launch
