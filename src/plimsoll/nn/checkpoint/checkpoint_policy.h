#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <functional>

namespace plimsoll::nn {

/// The fate of an operator's results in selective checkpointing. In eager mode, Must and Prefer mean the same.
enum class CheckpointPolicy : std::uint8_t {
  kMustSave,         ///< Kept from forward; backward does not run the operator again.
  kPreferSave,       ///< As kMustSave.
  kMustRecompute,    ///< Dropped after forward; backward runs the operator again.
  kPreferRecompute,  ///< As kMustRecompute.
};

/// Decides for each operator call of the forward pass. Recomputation follows the decision of forward and, as in torch
/// 2.13, does not call this: `is_recompute` is always false.
using CheckpointPolicyFunction = std::function<CheckpointPolicy(const c10::OperatorHandle& op, bool is_recompute)>;

}  // namespace plimsoll::nn
