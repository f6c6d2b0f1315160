// nvJitLink's face.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

extern "C" {
int nvJitLinkCreate(void**, std::uint32_t, const char* const*);
int nvJitLinkDestroy(void**);
int nvJitLinkAddData(void*, int, const void*, std::size_t, const char*);
int nvJitLinkComplete(void*);
int nvJitLinkGetLinkedCubinSize(void*, std::size_t*);
int nvJitLinkGetLinkedCubin(void*, void*);
int nvJitLinkGetErrorLogSize(void*, std::size_t*);
}

TEST_CASE("the linked image is the added image") {
  void* linker = nullptr;
  CHECK(nvJitLinkCreate(&linker, 0, nullptr) == 2);  // No architecture.
  const char* options[] = {"-arch=sm_90"};
  REQUIRE(nvJitLinkCreate(&linker, 1, options) == 0);
  std::size_t bytes = 0;
  CHECK(nvJitLinkComplete(linker) == 3);  // Nothing to link.
  REQUIRE(nvJitLinkAddData(linker, 1, "abc", 3, nullptr) == 0);
  REQUIRE(nvJitLinkAddData(linker, 1, "de", 2, "second") == 0);
  CHECK(nvJitLinkGetLinkedCubinSize(linker, &bytes) == 3);  // Not complete.
  REQUIRE(nvJitLinkComplete(linker) == 0);
  REQUIRE(nvJitLinkGetLinkedCubinSize(linker, &bytes) == 0);
  std::string image(bytes, '\0');
  REQUIRE(nvJitLinkGetLinkedCubin(linker, image.data()) == 0);
  CHECK(image == "abcde");
  CHECK(nvJitLinkGetErrorLogSize(linker, &bytes) == 0);
  CHECK(bytes == 0);
  CHECK(nvJitLinkDestroy(&linker) == 0);
  CHECK(linker == nullptr);
  CHECK(nvJitLinkDestroy(&linker) == 3);
}
