#pragma once

namespace plimsoll::pretend::cufft {

enum Result : int {
  kSuccess = 0x0,
  kInvalidPlan = 0x1,
  kAllocFailed = 0x2,
  kInvalidType = 0x3,
  kInvalidValue = 0x4,
  kInvalidSize = 0x8,
  kNotSupported = 0x10,
};

/// cufftType: a letter before and after the 2 of its name.
enum Transform : int { kC2C = 0x29, kR2C = 0x2a, kC2R = 0x2c, kZ2Z = 0x69, kD2Z = 0x6a, kZ2D = 0x6c };

/// A cufftHandle is a number, not a pointer.
using PlanId = int;

}  // namespace plimsoll::pretend::cufft
