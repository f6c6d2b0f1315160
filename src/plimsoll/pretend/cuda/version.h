#pragma once

/// The CUDA version that the faces report. The build passes PLIMSOLL_CUDA_MAJOR (12 or 13), and optionally the whole
/// version as PLIMSOLL_CUDA_VERSION (12040, 13000 …).
#ifndef PLIMSOLL_CUDA_MAJOR
#define PLIMSOLL_CUDA_MAJOR 13
#endif

namespace plimsoll::pretend {

#ifdef PLIMSOLL_CUDA_VERSION
inline constexpr int kCudaVersion = PLIMSOLL_CUDA_VERSION;
#elif PLIMSOLL_CUDA_MAJOR >= 13
inline constexpr int kCudaVersion = PLIMSOLL_CUDA_MAJOR * 1000;
#else
inline constexpr int kCudaVersion = 12040;  // torch 2.5's; nothing in later CUDA 12 builds depends on it.
#endif
inline constexpr int kCudaMajor = kCudaVersion / 1000;
inline constexpr int kCudaMinor = kCudaVersion % 1000 / 10;

/// The version of a library.
struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  /// As the libraries' functions return it; `factor` is that of the major version.
  constexpr int number(int factor = 1000) const { return major * factor + minor * 100 + patch; }

  /// The part of the version that a libraryPropertyType (0, 1, 2) selects. Returns false for another property or a null
  /// `value`.
  bool part(int property, int* value) const {
    if (value == nullptr || property < 0 || property > 2) return false;
    *value = property == 0 ? major : property == 1 ? minor : patch;
    return true;
  }
};

}  // namespace plimsoll::pretend
