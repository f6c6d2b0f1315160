// NVTX's face: ranges nest.

#include <doctest/doctest.h>

#include <cstdint>

extern "C" {
int nvtxRangePushA(const char*);
int nvtxRangePop();
std::uint64_t nvtxRangeStartA(const char*);
void nvtxRangeEnd(std::uint64_t);
void nvtxMarkA(const char*);
}

TEST_CASE("ranges nest, and an extra pop is an error") {
  CHECK(nvtxRangePushA("outer") == 0);
  CHECK(nvtxRangePushA("inner") == 1);
  CHECK(nvtxRangePop() == 1);
  CHECK(nvtxRangePop() == 0);
  CHECK(nvtxRangePop() < 0);
  nvtxMarkA("mark");
  const std::uint64_t first = nvtxRangeStartA("a"), second = nvtxRangeStartA("b");
  CHECK(first != second);
  nvtxRangeEnd(first);
  nvtxRangeEnd(second);
}
