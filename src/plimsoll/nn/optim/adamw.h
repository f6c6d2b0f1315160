#pragma once

#include <string>
#include <vector>

#include "plimsoll/nn/optim/adam.h"

namespace plimsoll::nn {

/// Like AdamOptions, with AdamW's default weight decay, which is always decoupled.
struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  bool capturable = false;
  Implementation implementation = Implementation::kDefault;

  operator AdamOptions() const {
    return {.lr = lr,
            .betas = betas,
            .eps = eps,
            .weight_decay = weight_decay,
            .amsgrad = amsgrad,
            .maximize = maximize,
            .capturable = capturable,
            .decoupled_weight_decay = true,
            .implementation = implementation};
  }
};

/// torch.optim.AdamW: Adam with decoupled weight decay. A group's options are AdamWOptions, or AdamOptions with
/// decoupled_weight_decay.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<at::Tensor> parameters, const AdamWOptions& defaults = {})
      : Adam(std::move(parameters), defaults) {}
  explicit AdamW(std::vector<Group> groups, const AdamWOptions& defaults = {}) : Adam(std::move(groups), defaults) {}

  std::string optimizer_name() const override { return "AdamW"; }
};

}  // namespace plimsoll::nn
