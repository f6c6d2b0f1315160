// NVSHMEM's face: it reports that it was not started, and cannot be started.

#include <doctest/doctest.h>

#include <cstddef>

#include "plimsoll/pretend/model/control.h"

extern "C" {
int nvshmemid_init_status();
int nvshmemid_hostlib_init_attr();
void nvshmemid_hostlib_finalize(void*, void*);
void* nvshmem_malloc(std::size_t);
void nvshmem_free(void*);
void nvshmem_info_get_version(int*, int*);
}

TEST_CASE("NVSHMEM fails by name, with its own error") {
  CHECK(nvshmemid_init_status() == 0);
  CHECK(nvshmemid_hostlib_init_attr() == 3);
  CHECK(nvshmem_malloc(16) == nullptr);
  nvshmem_free(nullptr);
  nvshmemid_hostlib_finalize(nullptr, nullptr);
  const auto names = plimsoll::pretend::control::unpretended();
  REQUIRE(names.size() == 2);
  CHECK(names[0] == "nvshmemid_hostlib_init_attr");
  CHECK(names[1] == "nvshmem_malloc");
  int major = 0, minor = 0;
  nvshmem_info_get_version(&major, &minor);
  CHECK(major == 3);
}
