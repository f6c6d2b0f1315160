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

}  // namespace plimsoll::pretend
