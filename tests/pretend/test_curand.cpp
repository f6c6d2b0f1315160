#include <doctest/doctest.h>

#include "pretend/recorder.h"

using namespace plimsoll::pretend;

extern "C" {
int curandCreateGenerator(void**, int);
int curandDestroyGenerator(void*);
int curandSetStream(void*, void*);
int curandSetPseudoRandomGeneratorSeed(void*, unsigned long long);
int curandSetGeneratorOffset(void*, unsigned long long);
int curandSetQuasiRandomGeneratorDimensions(void*, unsigned);
int curandGenerateUniform(void*, float*, std::size_t);
int curandGenerateNormal(void*, float*, std::size_t, float, float);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 101;
constexpr int kTypeError = 103;
constexpr int kLengthNotMultiple = 105;
constexpr int kPhilox = 161;
constexpr int kSobol = 201;

}  // namespace

TEST_CASE("a generator works on its stream") {
  void* generator = nullptr;
  REQUIRE(curandCreateGenerator(&generator, kPhilox) == kSuccess);
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 42) == kSuccess);
  CHECK(curandSetGeneratorOffset(generator, 4) == kSuccess);
  CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 2) == kTypeError);
  Stream* stream = machine().create_stream(0, 0, 0);
  CHECK(curandSetStream(generator, stream) == kSuccess);
  DeviceBuffer device(1 << 20);
  Recorder recorder;
  CHECK(curandGenerateUniform(generator, device.get<float>(), 7) == kSuccess);
  CHECK(curandGenerateNormal(generator, device.get<float>(), 8, 0, 1) == kSuccess);
  CHECK(curandGenerateNormal(generator, device.get<float>(), 7, 0, 1) == kLengthNotMultiple);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == "curandGenerateUniform");
  CHECK(entries[1].event.stream == stream->id);
  CHECK(curandDestroyGenerator(generator) == kSuccess);
  machine().destroy_stream(stream);
}

TEST_CASE("a quasi-random generator has dimensions but no seed") {
  void* generator = nullptr;
  REQUIRE(curandCreateGenerator(&generator, kSobol) == kSuccess);
  CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 3) == kSuccess);
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 42) == kTypeError);
  CHECK(curandDestroyGenerator(generator) == kSuccess);
}

TEST_CASE("an invalid generator is refused") {
  void* generator = nullptr;
  CHECK(curandCreateGenerator(&generator, 7) == kTypeError);
  CHECK(curandGenerateUniform(nullptr, nullptr, 1) == kNotInitialized);
  CHECK(curandDestroyGenerator(nullptr) == kNotInitialized);
}
