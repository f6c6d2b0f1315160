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

#include "plimsoll/nn/optim/step_observable.h"

/// Python's torch.optim for libtorch: the for-loop, foreach and fused forms, step hooks, state that can be enumerated.
/// Each optimizer issues the operators of its Python counterpart (torch 2.13) in the same order and frees each
/// temporary at the same point, so that numbers are equal to the bit and allocations to the event.
namespace plimsoll::nn {

/// The form of an update. Foreach needs temporaries of the size of all parameters at once; the others do not.
enum class Implementation {
  kDefault,  ///< torch's choice: foreach if every parameter with a gradient is on an accelerator, otherwise for-loop.
  kForLoop,
  kForeach,
  kFused,
};

/// The state tensors of an optimizer, by parameter (index counted through all groups) and name. Parameters without a
/// step have no state. Does not contain options.
struct OptimizerState {
  struct Entry {
    std::size_t parameter;
    std::string name;
    at::Tensor tensor;
  };
  std::size_t parameter_count = 0;
  std::vector<Entry> entries;
};

/// The base of all optimizers here: parameters in groups, their state, and zero_grad.
///
/// State belongs to the parameter's TensorImpl, so it stays if set_data replaces the parameter's data. Not thread-safe.
class Optimizer : public StepObservable {
 public:
  using LossClosure = std::function<at::Tensor()>;

  ~Optimizer() override;

  /// Updates each parameter that has a gradient.
  void step();

  /// Calls `closure` with gradients enabled, then steps; returns the closure's result.
  at::Tensor step(const LossClosure& closure);

  /// Drops the gradients, or fills them with zeros if `set_to_none` is false.
  void zero_grad(bool set_to_none = true);

  std::vector<at::Tensor> parameters() const override;

  /// The parameters, group by group.
  const std::vector<std::vector<at::Tensor>>& parameter_groups() const noexcept { return groups_; }

  void for_each_state(const StateVisitor& visit) const override;

  /// The current state. The tensors are the optimizer's own, not copies: a later step changes them.
  OptimizerState export_state() const;

  /// Replaces all state by copies of the given tensors, on the parameter's device and in its dtype ("step": where this
  /// optimizer keeps it). Throws and changes nothing unless the number of parameters matches and each parameter has
  /// either no state or all of the state that this optimizer keeps for it, with the right shapes.
  void import_state(const OptimizerState& state);

 protected:
  struct NamedState {
    std::string name;
    at::Tensor tensor;
  };
  /// The state of one parameter, in order of creation.
  using ParameterState = std::vector<NamedState>;

  /// The expected form of a state tensor.
  struct StateSlot {
    std::string_view name;
    std::vector<std::int64_t> sizes;
    at::TensorOptions options;
  };

  /// `defaults` determines how zero_grad fills with zeros.
  explicit Optimizer(Implementation defaults) : default_implementation_(defaults) {}

  /// Adds a group. Throws unless each parameter is defined, a leaf (or retains its gradient), and not in another group.
  void add_parameters(std::vector<at::Tensor> parameters);

  /// Updates the parameters of one group. Called without gradients.
  virtual void update_group(std::size_t group) = 0;

  /// All state that this optimizer keeps for a parameter of the group, in order of creation.
  virtual std::vector<StateSlot> state_slots(std::size_t group, const at::Tensor& parameter) const = 0;

  /// The state of a parameter, empty at first. The reference stays valid until state is imported.
  ParameterState& state_of(const at::Tensor& parameter);

  /// Adds a new tensor to the state and calls the state hooks.
  void create_state(const at::Tensor& parameter, ParameterState& state, std::string_view name, at::Tensor tensor);

  /// The named tensor; undefined if absent.
  static at::Tensor find_state(const ParameterState& state, std::string_view name);

 private:
  void zero_in_place();
  std::vector<ParameterState> checked_copies(const OptimizerState& state) const;

  Implementation default_implementation_;
  std::vector<std::vector<at::Tensor>> groups_;
  std::unordered_map<const at::TensorImpl*, std::size_t> state_index_;
  std::deque<ParameterState> states_;  // In order of first use. References stay valid when others are added.
};

/// Parameters that share options; without options, the optimizer's defaults.
template <class Options>
struct ParamGroup {
  std::vector<at::Tensor> parameters;
  std::optional<Options> options = std::nullopt;
};

/// An optimizer with options of type Options for each group.
///
/// REQUIRES: `check_group(const std::vector<at::Tensor>&, const Options&)` throws on options or parameters that the
/// optimizer does not support; `options.implementation` is an Implementation.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  using Group = ParamGroup<Options>;

  explicit GroupedOptimizer(std::vector<Group> groups, const Options& defaults = {})
      : Optimizer(defaults.implementation), defaults_(defaults) {
    check_group({}, defaults);
    require_any(groups.size());
    for (Group& group : groups) add_param_group(std::move(group));
  }

  explicit GroupedOptimizer(std::vector<at::Tensor> parameters, const Options& defaults = {})
      : Optimizer(defaults.implementation), defaults_(defaults) {
    require_any(parameters.size());
    add_param_group({std::move(parameters)});
  }

  void add_param_group(Group group) {
    Options options = group.options.value_or(defaults_);
    check_group(group.parameters, options);
    add_parameters(std::move(group.parameters));
    options_.push_back(options);
  }

  /// The options of a group. May be changed between steps (learning rate schedule); they are not checked again.
  Options& options(std::size_t group = 0) { return options_.at(group); }
  const Options& options(std::size_t group = 0) const { return options_.at(group); }

  const Options& defaults() const noexcept { return defaults_; }

 private:
  static void require_any(std::size_t count) {
    TORCH_CHECK_VALUE(count != 0,
                      "an optimizer needs at least one parameter, found none; "
                      "pass module->parameters() after the module's submodules are registered");
  }

  const Options defaults_;
  std::vector<Options> options_;
};

}  // namespace plimsoll::nn
