// cuRAND's host interface. torch has its own generators and does not use this; extensions and other libraries do.
// Numbers are generated only on the device, so never. Generators on the host are not implemented, because their numbers
// would have to be random.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/model/object.h"

namespace {

using namespace plimsoll::pretend;

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 101,
  kAllocationFailed = 102,
  kTypeError = 103,
  kOutOfRange = 104,
  kLengthNotMultiple = 105,
};

/// Kinds of generator: pseudo-random from 100 on, quasi-random from 200 on.
constexpr int kFirstKind = 100;
constexpr int kFirstQuasiKind = 200;
constexpr int kLastKind = 204;
constexpr unsigned kMostDimensions = 20000;

/// curandGenerator_t.
struct Generator : Object<0x524e4731U> {
  int kind = kFirstKind;
  std::atomic<void*> stream{nullptr};
  std::atomic<unsigned long long> seed{0};
  std::atomic<unsigned long long> offset{0};
  std::atomic<int> ordering{0};
  std::atomic<unsigned> dimensions{1};
};

using Generators = Objects<kNotInitialized, kNotInitialized, kAllocationFailed>;

bool quasi(const Generator& generator) { return generator.kind >= kFirstQuasiKind; }

/// A pseudo-random generator makes normal numbers in pairs.
int generate_pairs(const char* function, const Generator* generator, std::size_t numbers) {
  if (alive(generator) && !quasi(*generator) && numbers % 2 != 0) return kLengthNotMultiple;
  return Generators::enqueue(function, generator);
}

}  // namespace

PLIMSOLL_API int curandCreateGenerator(Generator** out, int kind) {
  if (out == nullptr) return kNotInitialized;
  if (kind < kFirstKind || kind > kLastKind) return kTypeError;
  if (!machine().device(current_device()).ensure_context(machine().profile())) return kAllocationFailed;
  const int status = Generators::make(out);
  if (status == kSuccess) (*out)->kind = kind;
  return status;
}

PLIMSOLL_API int curandDestroyGenerator(Generator* generator) { return Generators::destroy(generator); }

PLIMSOLL_API int curandGetVersion(int* version) { return give(version, kCurandVersion.number(), kOutOfRange); }

PLIMSOLL_API int curandGetProperty(int property, int* value) {
  return kCurandVersion.part(property, value) ? kSuccess : kOutOfRange;
}

PLIMSOLL_API int curandSetStream(Generator* generator, void* stream) {
  return Generators::set(generator, &Generator::stream, stream);
}

PLIMSOLL_API int curandSetPseudoRandomGeneratorSeed(Generator* generator, unsigned long long seed) {
  if (alive(generator) && quasi(*generator)) return kTypeError;
  return Generators::set(generator, &Generator::seed, seed);
}

PLIMSOLL_API int curandSetGeneratorOffset(Generator* generator, unsigned long long offset) {
  return Generators::set(generator, &Generator::offset, offset);
}

PLIMSOLL_API int curandSetGeneratorOrdering(Generator* generator, int ordering) {
  return Generators::set(generator, &Generator::ordering, ordering);
}

PLIMSOLL_API int curandSetQuasiRandomGeneratorDimensions(Generator* generator, unsigned dimensions) {
  if (!alive(generator)) return kNotInitialized;
  if (!quasi(*generator)) return kTypeError;
  if (dimensions < 1 || dimensions > kMostDimensions) return kOutOfRange;
  return Generators::set(generator, &Generator::dimensions, dimensions);
}

#define PLIMSOLL_CURAND_GENERATE(name) \
  PLIMSOLL_API int name(Generator* generator) { return Generators::enqueue(#name, generator); }
PLIMSOLL_CURAND_GENERATE(curandGenerate)
PLIMSOLL_CURAND_GENERATE(curandGenerateLongLong)
PLIMSOLL_CURAND_GENERATE(curandGenerateUniform)
PLIMSOLL_CURAND_GENERATE(curandGenerateUniformDouble)
PLIMSOLL_CURAND_GENERATE(curandGeneratePoisson)
PLIMSOLL_CURAND_GENERATE(curandGenerateSeeds)

#define PLIMSOLL_CURAND_GENERATE_PAIRS(name)                                           \
  PLIMSOLL_API int name(Generator* generator, void* /*output*/, std::size_t numbers) { \
    return generate_pairs(#name, generator, numbers);                                  \
  }
PLIMSOLL_CURAND_GENERATE_PAIRS(curandGenerateNormal)
PLIMSOLL_CURAND_GENERATE_PAIRS(curandGenerateNormalDouble)
PLIMSOLL_CURAND_GENERATE_PAIRS(curandGenerateLogNormal)
PLIMSOLL_CURAND_GENERATE_PAIRS(curandGenerateLogNormalDouble)
