#pragma once

#include <string>
#include <vector>

#include "plimsoll/nn/optim/optimizer.h"

namespace plimsoll::nn {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  Implementation implementation = Implementation::kDefault;
};

/// Throws if an option is invalid.
void check_group(const std::vector<at::Tensor>& parameters, const SGDOptions& options);

/// torch.optim.SGD. State: "momentum_buffer" if momentum is not 0, created in the first step in which the parameter has
/// a gradient, as a copy of that gradient. As in torch, the foreach form with Nesterov momentum, without weight decay
/// and maximize, changes the gradients themselves.
class SGD final : public GroupedOptimizer<SGDOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

  std::string optimizer_name() const override { return "SGD"; }

 protected:
  void update_group(std::size_t group) override;
  std::vector<StateSlot> state_slots(std::size_t group, const at::Tensor& parameter) const override;
};

}  // namespace plimsoll::nn
