// Kernels: registration, launches, attributes, occupancy.

#include <cstring>
#include <vector>

#include "plimsoll/pretend/cuda/occupancy.h"
#include "plimsoll/pretend/model/streams/functions.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared;
  cudaStream_t stream;
};

/// The configurations that <<<…>>> pushes and the kernel's host stub pops.
thread_local std::vector<Configuration> t_configurations;

/// One handle serves all registered binaries: their code is never read.
void* g_binary[1];

cudaError_t launch(const void* function, const Configuration& to) {
  const Launch launch{.key = function,
                      .grid = {to.grid.x, to.grid.y, to.grid.z},
                      .block = {to.block.x, to.block.y, to.block.z},
                      .shared = to.shared};
  return status(enqueue_launch(launch, to.stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

}  // namespace

PLIMSOLL_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream) {
  t_configurations.push_back({grid, block, shared, stream});
  return 0;
}

PLIMSOLL_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (t_configurations.empty()) return status(cudaErrorInvalidConfiguration);
  const Configuration configuration = t_configurations.back();
  t_configurations.pop_back();
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

PLIMSOLL_API void** __cudaRegisterFatBinary(void*) { return g_binary; }
PLIMSOLL_API void __cudaRegisterFatBinaryEnd(void**) {}
PLIMSOLL_API void __cudaUnregisterFatBinary(void**) {}
PLIMSOLL_API char __cudaInitModule(void**) { return 0; }

PLIMSOLL_API void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*,
                                         dim3*, int*) {
  functions().add_kernel(host, name);
}

PLIMSOLL_API void __cudaRegisterVar(void**, char* host, char*, const char*, int, size_t bytes, int, int) {
  functions().add_variable(host, bytes);
}

PLIMSOLL_API void __cudaRegisterManagedVar(void**, void**, char* host, const char*, int, size_t bytes, int, int) {
  functions().add_variable(host, bytes);
}

// Since CUDA 13, host stubs launch by the kernel's handle. Ours is the address of the host stub.
PLIMSOLL_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**, size_t shared,
                                            cudaStream_t stream) {
  return launch(kernel, {grid, block, shared, stream});
}
PLIMSOLL_ALIAS(__cudaLaunchKernel_ptsz, __cudaLaunchKernel);

PLIMSOLL_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void**, size_t shared,
                                          cudaStream_t stream) {
  return launch(function, {grid, block, shared, stream});
}
PLIMSOLL_ALIAS(cudaLaunchCooperativeKernel, cudaLaunchKernel);

PLIMSOLL_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void**) {
  if (config == nullptr) return status(cudaErrorInvalidConfiguration);
  return launch(function, {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream});
}

PLIMSOLL_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  *function = static_cast<cudaFunction_t>(const_cast<void*>(symbol));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  const Profile& profile = machine().profile();
  std::memset(out, 0, sizeof *out);
  out->maxThreadsPerBlock = 1024;
  out->numRegs = kRegistersPerThread;
  out->binaryVersion = binary_version(profile);
  out->ptxVersion = out->binaryVersion;
  out->maxDynamicSharedSizeBytes = static_cast<int>(profile.shared_per_block_optin);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  const bool too_large = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
                         value > static_cast<int>(machine().profile().shared_per_block_optin);
  return status(too_large ? cudaErrorInvalidValue : cudaSuccess);
}

PLIMSOLL_API cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

PLIMSOLL_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                                size_t shared, unsigned) {
  *blocks = active_blocks(machine().profile(), threads, shared);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                                       size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

PLIMSOLL_API cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*, const cudaLaunchConfig_t*) {
  *clusters = machine().profile().multiprocessors / 4;
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
PLIMSOLL_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                                         int) {
  return cudaFuncSetAttribute(kernel, attribute, value);
}
#endif

#if CUDART_VERSION >= 12080
PLIMSOLL_API cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void*, cudaJitOption*, void**, unsigned,
                                             cudaLibraryOption*, void**, unsigned) {
  *library = reinterpret_cast<cudaLibrary_t>(g_binary);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t, const char* name) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(functions().make_kernel(name)));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
#endif

PLIMSOLL_API cudaError_t cudaProfilerStart() { return cudaSuccess; }
PLIMSOLL_API cudaError_t cudaProfilerStop() { return cudaSuccess; }
