#include <cstddef>

#include "plimsoll/pretend/model/library_call.h"

/// NVSHMEM is not implemented. torch's extension for it must load, and its use fails with NVSHMEM's own error. This
/// file has the functions for which a generated stub, which returns a status, would be wrong: they return addresses or
/// nothing, or they report that NVSHMEM was not started.
namespace {

constexpr int kNotSupported = 3;    // NVSHMEMX_ERROR_NOT_SUPPORTED
constexpr int kNotInitialized = 0;  // NVSHMEM_STATUS_NOT_INITIALIZED

using plimsoll::pretend::unpretended;

void* no_address(const char* function) {
  unpretended(function, kNotSupported);
  return nullptr;
}

}  // namespace

PLIMSOLL_API int nvshmemid_init_status() { return kNotInitialized; }
PLIMSOLL_API void nvshmemid_hostlib_finalize(void*, void*) {}
PLIMSOLL_API int nvshmemid_hostlib_init_attr() { return unpretended("nvshmemid_hostlib_init_attr", kNotSupported); }

/// 3.4: torch's extension uses the symbols of this version of the host interface.
PLIMSOLL_API void nvshmem_info_get_version(int* major, int* minor) {
  if (major != nullptr) *major = 3;
  if (minor != nullptr) *minor = 4;
}

PLIMSOLL_API void* nvshmem_malloc(std::size_t) { return no_address("nvshmem_malloc"); }
PLIMSOLL_API void nvshmem_free(void*) {}
PLIMSOLL_API void* nvshmem_ptr(const void*, int) { return no_address("nvshmem_ptr"); }
PLIMSOLL_API void* nvshmemx_mc_ptr(int, const void*) { return no_address("nvshmemx_mc_ptr"); }

/// -1: unknown team.
PLIMSOLL_API int nvshmem_team_n_pes(int) { return unpretended("nvshmem_team_n_pes", -1); }
