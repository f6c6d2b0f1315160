// NVRTC's face: programs that "compile".

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

extern "C" {
int nvrtcVersion(int*, int*);
const char* nvrtcGetErrorString(int);
int nvrtcGetNumSupportedArchs(int*);
int nvrtcGetSupportedArchs(int*);
int nvrtcCreateProgram(void**, const char*, const char*, int, const char* const*, const char* const*);
int nvrtcDestroyProgram(void**);
int nvrtcAddNameExpression(void*, const char*);
int nvrtcCompileProgram(void*, int, const char* const*);
int nvrtcGetLoweredName(void*, const char*, const char**);
int nvrtcGetPTXSize(void*, std::size_t*);
int nvrtcGetPTX(void*, char*);
int nvrtcGetCUBINSize(void*, std::size_t*);
int nvrtcGetCUBIN(void*, char*);
int nvrtcGetProgramLogSize(void*, std::size_t*);
int nvrtcGetProgramLog(void*, char*);
}

namespace {

struct Program {
  Program() { REQUIRE(nvrtcCreateProgram(&get, "__global__ void f() {}", "f.cu", 0, nullptr, nullptr) == 0); }
  ~Program() { CHECK(nvrtcDestroyProgram(&get) == 0); }
  void* get = nullptr;
};

}  // namespace

TEST_CASE("a program compiles to an image with its names") {
  Program program;
  const char* lowered = nullptr;
  REQUIRE(nvrtcAddNameExpression(program.get, "&f<float>") == 0);
  CHECK(nvrtcGetLoweredName(program.get, "&f<float>", &lowered) == 9);
  std::size_t bytes = 0;
  CHECK(nvrtcGetCUBINSize(program.get, &bytes) == 4);
  const char* options[] = {"--gpu-architecture=sm_90"};
  REQUIRE(nvrtcCompileProgram(program.get, 1, options) == 0);
  REQUIRE(nvrtcGetLoweredName(program.get, "&f<float>", &lowered) == 0);
  CHECK(std::string(lowered) == "f<float>");
  CHECK(nvrtcGetLoweredName(program.get, "g", &lowered) == 10);
  CHECK(nvrtcAddNameExpression(program.get, "g") == 8);
  REQUIRE(nvrtcGetCUBINSize(program.get, &bytes) == 0);
  std::string image(bytes, '\0');
  REQUIRE(nvrtcGetCUBIN(program.get, image.data()) == 0);
  CHECK(image.find("f<float>") != std::string::npos);
  REQUIRE(nvrtcGetProgramLogSize(program.get, &bytes) == 0);
  REQUIRE(bytes == 1);
  char log = 'x';
  CHECK(nvrtcGetProgramLog(program.get, &log) == 0);
  CHECK(log == '\0');
}

TEST_CASE("a virtual architecture gives PTX and no machine code") {
  Program program;
  const char* options[] = {"-arch=compute_90"};
  REQUIRE(nvrtcCompileProgram(program.get, 1, options) == 0);
  std::size_t cubin = 1, ptx = 0;
  CHECK(nvrtcGetCUBINSize(program.get, &cubin) == 0);
  CHECK(cubin == 0);
  REQUIRE(nvrtcGetPTXSize(program.get, &ptx) == 0);
  std::vector<char> text(ptx, 'x');
  REQUIRE(nvrtcGetPTX(program.get, text.data()) == 0);
  CHECK(text.back() == '\0');
}

TEST_CASE("a null program is an error, not a crash") {
  void* none = nullptr;
  std::size_t bytes = 0;
  CHECK(nvrtcDestroyProgram(&none) == 4);
  CHECK(nvrtcCompileProgram(nullptr, 0, nullptr) == 4);
  CHECK(nvrtcGetPTXSize(nullptr, &bytes) == 4);
  CHECK(nvrtcCreateProgram(&none, nullptr, nullptr, 0, nullptr, nullptr) == 3);
  CHECK(std::string(nvrtcGetErrorString(4)) == "NVRTC_ERROR_INVALID_PROGRAM");
}

TEST_CASE("the architectures of the profiles are supported") {
  int count = 0;
  REQUIRE(nvrtcGetNumSupportedArchs(&count) == 0);
  std::vector<int> architectures(static_cast<std::size_t>(count));
  REQUIRE(nvrtcGetSupportedArchs(architectures.data()) == 0);
  for (const int wanted : {80, 89, 90}) {
    CHECK(std::find(architectures.begin(), architectures.end(), wanted) != architectures.end());
  }
}
