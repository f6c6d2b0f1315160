#pragma once

#include <ATen/core/Tensor.h>

#include "plimsoll/nn/dispatch_mode.h"

namespace plimsoll::plan {

/// Operators on large CPU tensors are not computed: their results get memory, as they would, and no values. What is
/// offloaded to the host is as large as the host of a training node, and a plan needs its sizes alone; memory that
/// nobody writes takes no room.
///
/// Small tensors, views, and whatever has a tensor of another device among its arguments are computed as ever.
class IdleHost final : public nn::DispatchMode {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override;
};

}  // namespace plimsoll::plan
