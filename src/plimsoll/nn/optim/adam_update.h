#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "plimsoll/nn/optim/adam.h"

namespace plimsoll::nn {

/// The inputs of one Adam update: for each parameter with a gradient, at the same index, its gradient and its state.
struct AdamLists {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> exp_avgs;
  std::vector<at::Tensor> exp_avg_sqs;
  std::vector<at::Tensor> max_exp_avg_sqs;  ///< Empty unless amsgrad.
  std::vector<at::Tensor> steps;
};

/// The three forms of the update. REQUIRES: gradient mode is off.
void adam_for_loop(const AdamLists& lists, const AdamOptions& options);
void adam_foreach(const AdamLists& lists, const AdamOptions& options);
void adam_fused(const AdamLists& lists, const AdamOptions& options);

/// Throws unless a step without a device synchronisation is possible for each parameter.
void check_capturable(const AdamLists& lists);

}  // namespace plimsoll::nn
