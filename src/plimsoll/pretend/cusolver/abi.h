#pragma once

#include <atomic>

#include "plimsoll/pretend/model/object.h"

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

using Handles = Objects<kNotInitialized, kInvalidValue, kAllocFailed>;
using Infos = Objects<kInvalidValue, kInvalidValue, kAllocFailed>;

/// cusolverDnHandle_t.
struct Handle : Object<0x534f4c31U> {
  std::atomic<void*> stream{nullptr};
  std::atomic<int> deterministic_mode{1};
};

/// cusolverDnParams_t: options by function.
using Params = Object<0x534f5031U>;

/// gesvdjInfo_t and syevjInfo_t: settings of the Jacobi methods.
struct JacobiInfo : Object<0x534f4a31U> {
  std::atomic<double> tolerance{0};  ///< 0: the library's own choice.
  std::atomic<int> max_sweeps{100};
  std::atomic<int> sort{1};
};

}  // namespace plimsoll::pretend::cusolver

/// Defines an entry point that only puts work on its handle's stream.
#define PLIMSOLL_CUSOLVER_CALL(name)                                       \
  PLIMSOLL_API int name(::plimsoll::pretend::cusolver::Handle* handle) {   \
    return ::plimsoll::pretend::cusolver::Handles::enqueue(#name, handle); \
  }
