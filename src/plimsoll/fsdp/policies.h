#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <variant>

namespace plimsoll::fsdp {

/// The dtypes in which a module computes, communicates and returns. Counterpart of torch's MixedPrecisionPolicy.
struct MixedPrecisionPolicy {
  /// Of the unsharded parameters and their all-gather; absent: as stored.
  std::optional<at::ScalarType> param_dtype = std::nullopt;
  /// Of the gradients' reduction; absent: as computed.
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;
  /// Floating-point outputs of forward are cast to it.
  std::optional<at::ScalarType> output_dtype = std::nullopt;
  bool cast_forward_inputs = true;  ///< Floating-point inputs of forward are cast to param_dtype.
};

/// Parameters, gradients and optimizer state stay on the device.
struct OffloadPolicy {};

/// Sharded parameters and gradients stay on the CPU, so the optimizer's state and step are there too.
struct CPUOffloadPolicy {
  bool pin_memory = true;  ///< Only copies from and to pinned memory overlap with compute.
};

using AnyOffloadPolicy = std::variant<OffloadPolicy, CPUOffloadPolicy>;

/// Whether parameters are freed after forward and gathered again in backward.
class ReshardAfterForward {
 public:
  /// Freed, except the root's, which backward needs first.
  ReshardAfterForward() = default;
  ReshardAfterForward(bool reshard) : value_(reshard) {}       // NOLINT: options read as values
  ReshardAfterForward(int world_size) : value_(world_size) {}  // NOLINT: kept sharded over that many ranks

  bool is_default() const { return std::holds_alternative<std::monostate>(value_); }
  std::optional<int> world_size() const {
    const int* size = std::get_if<int>(&value_);
    return size ? std::optional<int>(*size) : std::nullopt;
  }
  /// REQUIRES: not an int.
  bool reshards() const { return is_default() || std::get<bool>(value_); }

 private:
  std::variant<std::monostate, bool, int> value_;
};

}  // namespace plimsoll::fsdp
