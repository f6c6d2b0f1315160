// Modules and launches, for Triton, Inductor and torch's run-time compiler.

#include <cstring>

#include "plimsoll/pretend/cuda/occupancy.h"
#include "plimsoll/pretend/driver/driver.h"
#include "plimsoll/pretend/model/streams/functions.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::driver;

namespace {

/// One handle serves all loaded modules: their code is never read.
CUmod_st* const kModule = reinterpret_cast<CUmod_st*>(&machine);

CUfunction to_function(const void* key) { return static_cast<CUfunction>(const_cast<void*>(key)); }

CUresult load(CUmodule* module) {
  ensure_context();
  *module = kModule;
  return CUDA_SUCCESS;
}

CUresult launch(const Launch& launch, CUstream stream) {
  return enqueue_launch(launch, stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

PLIMSOLL_API CUresult cuModuleLoad(CUmodule* module, const char*) { return load(module); }
PLIMSOLL_API CUresult cuModuleLoadData(CUmodule* module, const void*) { return load(module); }
PLIMSOLL_API CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
  return load(module);
}
PLIMSOLL_API CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

PLIMSOLL_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  *function = to_function(functions().make_kernel(name));
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, size_t* bytes, CUmodule, const char* name) {
  const auto place = functions().variable(functions().name_key(name));
  if (place.offset + place.bytes > DeviceMemory::kVariables) return CUDA_ERROR_NOT_FOUND;
  if (pointer != nullptr) *pointer = ensure_context().memory.variables() + place.offset;
  if (bytes != nullptr) *bytes = place.bytes;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuLibraryLoadData(CUlibrary* library, const void*, CUjit_option*, void**, unsigned,
                                        CUlibraryOption*, void**, unsigned) {
  *library = reinterpret_cast<CUlibrary>(kModule);
  return CUDA_SUCCESS;
}
PLIMSOLL_API CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
PLIMSOLL_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary, const char* name) {
  *kernel = static_cast<CUkernel>(const_cast<void*>(functions().make_kernel(name)));
  return CUDA_SUCCESS;
}
PLIMSOLL_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  const Profile& profile = machine().profile();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = kRegistersPerThread;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = binary_version(profile);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(profile.shared_per_block_optin);
      return CUDA_SUCCESS;
    default:
      // Static shared, constant and local memory: binaries are not read, and none of these is device memory.
      *value = 0;
      return CUDA_SUCCESS;
  }
}

PLIMSOLL_API CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute attribute, int value) {
  const bool too_large = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
                         value > static_cast<int>(machine().profile().shared_per_block_optin);
  return too_large ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }

PLIMSOLL_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                     CUstream stream, void**, void**) {
  return launch({function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream);
}

PLIMSOLL_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                                CUstream stream, void**) {
  return launch({function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream);
}

PLIMSOLL_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  return launch({function,
                 {config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 config->sharedMemBytes},
                config->hStream);
}

PLIMSOLL_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads, size_t shared) {
  *blocks = active_blocks(machine().profile(), threads, shared);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  *clusters = machine().profile().multiprocessors / 4;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* state) {
  *state = reinterpret_cast<CUlinkState>(kModule);
  return CUDA_SUCCESS;
}
PLIMSOLL_API CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned, CUjit_option*,
                                       void**) {
  return CUDA_SUCCESS;
}
PLIMSOLL_API CUresult cuLinkAddFile_v2(CUlinkState, CUjitInputType, const char*, unsigned, CUjit_option*, void**) {
  return CUDA_SUCCESS;
}
PLIMSOLL_API CUresult cuLinkComplete(CUlinkState, void** image, size_t* bytes) {
  static char linked[] = "plimsoll";
  *image = linked;
  *bytes = sizeof linked;
  return CUDA_SUCCESS;
}
PLIMSOLL_API CUresult cuLinkDestroy(CUlinkState) { return CUDA_SUCCESS; }

PLIMSOLL_API CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*,
                                             const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                                             CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                             CUtensorMapFloatOOBfill) {
  std::memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}
