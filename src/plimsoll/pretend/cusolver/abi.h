#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plimsoll::pretend::cusolver {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 2,
  kInvalidValue = 3,
  kNotSupported = 9,
};

enum EigenMode : int { kNoVector = 0, kVector = 1 };
enum Side : int { kLeft = 0, kRight = 1 };

/// cusolverDnHandle_t.
struct Handle {
  static constexpr std::uint32_t kAlive = 0x534f4c31U;

  std::uint32_t magic = kAlive;
  std::atomic<void*> stream{nullptr};
  std::atomic<int> deterministic_mode{1};
};

/// cusolverDnParams_t: options by function.
struct Params {
  static constexpr std::uint32_t kAlive = 0x534f5031U;

  std::uint32_t magic = kAlive;
};

/// gesvdjInfo_t and syevjInfo_t: settings of the Jacobi methods.
struct JacobiInfo {
  static constexpr std::uint32_t kAlive = 0x534f4a31U;

  std::uint32_t magic = kAlive;
  double tolerance = 0;  ///< 0: the library's own choice.
  int max_sweeps = 100;
  int sort = 1;
};

template <typename T>
bool alive(const T* object) {
  return object != nullptr && object->magic == T::kAlive;
}

/// Reports work on the handle's stream.
int enqueue(const char* function, const Handle* handle);

}  // namespace plimsoll::pretend::cusolver
