// NVML's face on a machine of cards without peer access.

#include <doctest/doctest.h>

#include <cstdlib>

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetHandleByIndex_v2(unsigned, void**);
int nvmlDeviceGetP2PStatus(void*, void*, int, int*);
}

int main(int argc, char** argv) {
  setenv("PLIMSOLL_GPU_PROFILE", PLIMSOLL_SOURCE_DIR "/src/plimsoll/pretend/profiles/RTX-4090-24GB.json", 1);
  setenv("PLIMSOLL_GPUS", "2", 1);
  return doctest::Context(argc, argv).run();
}

TEST_CASE("a card can access only itself") {
  REQUIRE(nvmlInit_v2() == 0);
  void* first = nullptr;
  void* second = nullptr;
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &first) == 0);
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(1, &second) == 0);
  int status = -1;
  CHECK(nvmlDeviceGetP2PStatus(first, first, 0, &status) == 0);
  CHECK(status == 0);
  CHECK(nvmlDeviceGetP2PStatus(first, second, 0, &status) == 0);
  CHECK(status == 1);
  CHECK(nvmlShutdown() == 0);
}
