#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/nn/optim/optim_observable.h"

/// Optimizers as torch.optim has them in Python, for libtorch: the for-loop, foreach and fused forms, step hooks, state
/// that can be enumerated. Each issues the operators of its Python counterpart (torch 2.13) in the same order and lets
/// go of each temporary at the same point, so that numbers are equal to the bit and allocations to the event.
namespace plimsoll::nn {

/// How an update is computed. Foreach needs temporaries of the size of all parameters at once, the others do not.
enum class Implementation {
  kDefault,  ///< As torch chooses: foreach where every parameter with a gradient is on an accelerator, else for-loop.
  kForLoop,
  kForeach,
  kFused,
};

/// The state tensors of an optimizer, by the index of the parameter (counted through all groups) and by name. What has
/// not been stepped yet has none. Options are no part of it.
struct OptimizerState {
  struct Entry {
    std::size_t parameter;
    std::string name;
    at::Tensor tensor;
  };
  std::size_t parameter_count = 0;
  std::vector<Entry> entries;
};

/// The base of all optimizers here: parameters in groups, their state, gradients to zero.
///
/// State belongs to the parameter's TensorImpl, so it stays with a parameter whose data is replaced by set_data. Not
/// safe to use from several threads at once.
class Optimizer : public StepObservable {
 public:
  using LossClosure = std::function<at::Tensor()>;

  ~Optimizer() override;

  /// Updates each parameter that has a gradient.
  void step();

  /// Calls `closure` with gradients enabled, then steps; returns what the closure returned.
  at::Tensor step(const LossClosure& closure);

  /// Drops the gradients, or fills them with zeros where `set_to_none` is false.
  void zero_grad(bool set_to_none = true);

  std::vector<at::Tensor> parameters() const override;

  /// The parameters, group by group.
  const std::vector<std::vector<at::Tensor>>& parameter_groups() const noexcept { return groups_; }

  void for_each_state(const StateVisitor& visit) const override;

  /// The state there is. The tensors are the optimizer's own, not copies: a later step changes them.
  OptimizerState export_state() const;

  /// Replaces all state by copies of the given tensors, brought to the parameter's device and dtype ("step": to where
  /// this optimizer keeps it). Throws, and changes nothing, unless the number of parameters is this optimizer's and
  /// each parameter has either no state or all that this optimizer keeps for it, in its shape.
  void import_state(const OptimizerState& state);

 protected:
  struct NamedState {
    std::string name;
    at::Tensor tensor;
  };
  /// The state of one parameter, in order of creation.
  using ParameterState = std::vector<NamedState>;

  /// What a state tensor has to look like.
  struct StateSlot {
    std::string_view name;
    std::vector<std::int64_t> sizes;
    at::TensorOptions options;
  };

  /// `defaults` decides how zero_grad fills with zeros.
  explicit Optimizer(Implementation defaults) : default_implementation_(defaults) {}

  /// Adds a group. Throws unless each parameter is defined, a leaf (or retains its gradient), and in no group yet.
  void add_parameters(std::vector<at::Tensor> parameters);

  /// Updates the parameters of one group. Called without gradients.
  virtual void update_group(std::size_t group) = 0;

  /// All state that this optimizer keeps for a parameter of the group, in order of creation.
  virtual std::vector<StateSlot> state_slots(std::size_t group, const at::Tensor& parameter) const = 0;

  /// The state of a parameter, empty at first. The reference stays valid while no state is imported.
  ParameterState& state_of(const at::Tensor& parameter);

  /// Puts a new tensor into the state and tells the state hooks.
  void create_state(const at::Tensor& parameter, ParameterState& state, std::string_view name, at::Tensor tensor);

  /// The named tensor; an undefined one where there is none.
  static at::Tensor find_state(const ParameterState& state, std::string_view name);

 private:
  void zero_in_place();
  std::vector<ParameterState> checked_copies(const OptimizerState& state) const;

  Implementation default_implementation_;
  std::vector<std::vector<at::Tensor>> groups_;
  std::unordered_map<const at::TensorImpl*, std::size_t> state_index_;
  std::deque<ParameterState> states_;  // By first use. Elements keep their place as others are added.
};

/// Parameters that share options; without options, the optimizer's defaults.
template <class Options>
struct ParamGroup {
  std::vector<at::Tensor> parameters;
  std::optional<Options> options = std::nullopt;
};

/// An optimizer whose groups have options of one type each.
///
/// REQUIRES: `check_group(const std::vector<at::Tensor>&, const Options&)` throws on options or parameters that the
/// optimizer cannot work with; `options.implementation` is an Implementation.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  using Group = ParamGroup<Options>;

  void add_param_group(Group group) {
    Options options = group.options.value_or(defaults_);
    check_group(group.parameters, options);
    add_parameters(std::move(group.parameters));
    options_.push_back(options);
  }

  /// The options of a group, to be changed between steps (a schedule of learning rates); they are not checked again.
  Options& options(std::size_t group = 0) { return options_.at(group); }
  const Options& options(std::size_t group = 0) const { return options_.at(group); }

  const Options& defaults() const noexcept { return defaults_; }

 protected:
  GroupedOptimizer(std::vector<Group> groups, const Options& defaults)
      : Optimizer(defaults.implementation), defaults_(defaults) {
    check_group({}, defaults);
    require_any(groups.size());
    for (Group& group : groups) add_param_group(std::move(group));
  }

  GroupedOptimizer(std::vector<at::Tensor> parameters, const Options& defaults)
      : Optimizer(defaults.implementation), defaults_(defaults) {
    require_any(parameters.size());
    add_param_group({std::move(parameters)});
  }

 private:
  static void require_any(std::size_t count) {
    TORCH_CHECK_VALUE(count != 0,
                      "an optimizer needs at least one parameter, and was given none; "
                      "pass module->parameters() after the module's submodules are registered");
  }

  const Options defaults_;
  std::vector<Options> options_;
};

}  // namespace plimsoll::nn
