#pragma once

#include <array>
#include <span>

#include "plimsoll/pretend/cudnn/handle.h"

namespace plimsoll::pretend::cudnn {

inline constexpr int kMaxDimensions = 8;
using Dimensions = std::array<int, kMaxDimensions>;

/// cudnnTensorDescriptor_t.
struct TensorDescriptor : Object<0x43444e54> {
  int data_type = kFloat;
  int rank = 0;  ///< 0: not set.
  Dimensions dimensions{};
  Dimensions strides{};

  /// A tensor without gaps, the last dimension fastest.
  void set_packed(int type, std::span<const int> sizes);
  std::int64_t elements() const;
  /// From the first element to the end of the last.
  Bytes bytes() const;
};

/// cudnnFilterDescriptor_t. Always without gaps, in the order of `format`.
struct FilterDescriptor : Object<0x43444e46> {
  int data_type = kFloat;
  int format = 0;
  int rank = 0;
  Dimensions dimensions{};
};

/// Copies `rank` numbers to `out`. Returns false, and copies nothing, if there are too many or one is not positive.
bool copy_dimensions(Dimensions& out, int rank, const int* from);

}  // namespace plimsoll::pretend::cudnn
