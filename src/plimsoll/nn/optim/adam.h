#pragma once

#include <array>
#include <string>
#include <vector>

#include "plimsoll/nn/optim/optimizer.h"

namespace plimsoll::nn {

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool capturable = false;  ///< Keeps "step" on the device, without a synchronisation; not for parameters on the CPU.
  bool decoupled_weight_decay = false;  ///< Decays the parameter itself (AdamW) instead of adding to its gradient.
  Implementation implementation = Implementation::kDefault;
};

/// Throws if an option is invalid or a parameter is complex.
void check_group(const std::vector<at::Tensor>& parameters, const AdamOptions& options);

/// torch.optim.Adam. State: "step" (one number; on the CPU unless capturable or fused), "exp_avg", "exp_avg_sq" and,
/// for amsgrad, "max_exp_avg_sq", created in the first step in which the parameter has a gradient.
class Adam : public GroupedOptimizer<AdamOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

  std::string optimizer_name() const override { return "Adam"; }

 protected:
  void update_group(std::size_t group) override;
  std::vector<StateSlot> state_slots(std::size_t group, const at::Tensor& parameter) const override;

 private:
  void create_states(const at::Tensor& parameter, const AdamOptions& options, ParameterState& state);
};

}  // namespace plimsoll::nn
