// The driver's functions by name.

#include <dlfcn.h>

#include <string>

#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

namespace {

/// Our own libcuda.so.1, from the folder of this library, whether or not it is already loaded.
void* driver() {
  static void* const handle = [] {
    if (void* loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) return loaded;
    Dl_info here{};
    dladdr(reinterpret_cast<void*>(&driver), &here);
    const std::string path(here.dli_fname != nullptr ? here.dli_fname : "");
    return dlopen((path.substr(0, path.rfind('/') + 1) + "libcuda.so.1").c_str(), RTLD_NOW);
  }();
  return handle;
}

void* find(const std::string& name) {
  if (driver() == nullptr) return nullptr;
  for (const char* version : {"_v3", "_v2", ""}) {
    if (void* function = dlsym(driver(), (name + version).c_str())) return function;
  }
  return nullptr;
}

}  // namespace

PLIMSOLL_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                          unsigned long long, cudaDriverEntryPointQueryResult* result) {
  // The result reports an unknown name, not the status.
  *function = find(name);
  if (result != nullptr) {
    *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}

#undef cudaGetDriverEntryPoint
PLIMSOLL_API cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                                 cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}
