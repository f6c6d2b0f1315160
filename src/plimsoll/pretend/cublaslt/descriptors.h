#pragma once

#include <cstdint>

#include "plimsoll/pretend/cublaslt/abi.h"
#include "plimsoll/pretend/cublaslt/attributes.h"

namespace plimsoll::pretend::cublaslt {

enum LayoutAttribute : int {
  kLayoutType = 0,
  kLayoutOrder = 1,
  kLayoutRows = 2,
  kLayoutCols = 3,
  kLayoutLeadingDimension = 4,
  kLayoutBatchCount = 5,
  kLayoutStridedBatchOffset = 6,
  kLayoutPlaneOffset = 7,
  kLayoutBatchMode = 8,
};

enum MatmulAttribute : int {
  kMatmulComputeType = 0,
  kMatmulScaleType = 1,
  kMatmulPointerMode = 2,
  kMatmulTransA = 3,
  kMatmulTransB = 4,
  kMatmulTransC = 5,
  kMatmulFillMode = 6,
  kMatmulEpilogue = 7,
};

enum PreferenceAttribute : int { kPreferenceSearchMode = 0, kPreferenceMaxWorkspaceBytes = 1 };

enum TransformAttribute : int {
  kTransformScaleType = 0,
  kTransformPointerMode = 1,
  kTransformTransA = 2,
  kTransformTransB = 3
};

/// The four kinds of descriptor. Each kind has its own mark, so that they cannot be confused.
template <std::uint32_t kMark>
struct Descriptor {
  static constexpr std::uint32_t kAlive = kMark;

  std::uint32_t magic = kAlive;
  Attributes attributes;
};
using MatrixLayout = Descriptor<0x4c415931U>;
using MatmulDescriptor = Descriptor<0x4d4d4431U>;
using Preference = Descriptor<0x50524631U>;
using TransformDescriptor = Descriptor<0x54465231U>;

template <std::uint32_t kMark>
bool alive(const Descriptor<kMark>* descriptor) {
  return descriptor != nullptr && descriptor->magic == kMark;
}

}  // namespace plimsoll::pretend::cublaslt
