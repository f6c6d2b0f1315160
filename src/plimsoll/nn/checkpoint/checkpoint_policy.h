#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <functional>

namespace plimsoll::nn {

/// What selective checkpointing does with the results of an operator call. Eagerly, Must and Prefer mean the same.
enum class CheckpointPolicy : std::uint8_t {
  kMustSave,         ///< Kept from forward; backward does not run the operator again.
  kPreferSave,       ///< As kMustSave.
  kMustRecompute,    ///< Dropped after forward; backward runs the operator again.
  kPreferRecompute,  ///< As kMustRecompute.
};

/// Decides on each operator call of the forward pass. As in torch 2.13 it is not asked in recomputation, which follows
/// what it said in forward: `is_recompute` is always false.
using CheckpointPolicyFunction = std::function<CheckpointPolicy(const c10::OperatorHandle& op, bool is_recompute)>;

}  // namespace plimsoll::nn
