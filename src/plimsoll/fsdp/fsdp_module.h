#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/fsdp/group/comm.h"
#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/nn/tensor_tree.h"

namespace plimsoll::fsdp {

class FSDPParamGroup;
class FSDPState;

/// Whether a call also applies to the FSDP modules below the module.
struct Recurse {
  bool recurse = true;
};

/// Waits for an unshard that was started with `async_op`. The handle may be dropped: the module's forward waits too.
class UnshardHandle {
 public:
  UnshardHandle() = default;
  /// After this, the current stream may use the parameters. A second call does nothing.
  void wait();

 private:
  friend class FSDPModule;
  explicit UnshardHandle(std::vector<std::shared_ptr<FSDPParamGroup>> groups) : groups_(std::move(groups)) {}
  std::vector<std::shared_ptr<FSDPParamGroup>> groups_;
};

/// Handle to a module that fully_shard was applied to. Cheap to copy; valid while the module lives. Counterpart of
/// torch's FSDPModule, with its names.
class FSDPModule {
 public:
  /// Throws if fully_shard was not applied to the module.
  explicit FSDPModule(ModuleRef module);

  static bool is_fsdp_module(const torch::nn::Module& module);

  torch::nn::Module& module() const { return *module_; }

  /// Gathers the module's own parameters (not those of FSDP modules below) on the current stream. With `async_op` it
  /// returns at once; the handle or the module's forward waits.
  UnshardHandle unshard(bool async_op = false);
  /// Frees the gathered parameters; the module has its shards again.
  void reshard();

  /// To call after an exception in forward or backward, on the root, on every rank. Waits for pending work, frees
  /// gathered parameters and drops pending gradients, so that the next iteration starts clean.
  void reset_iter_state();

  void set_is_last_backward(bool is_last_backward);
  void set_requires_gradient_sync(bool requires_gradient_sync, Recurse recurse = {});
  void set_requires_all_reduce(bool requires_all_reduce, Recurse recurse = {});
  void set_reshard_after_forward(bool reshard_after_forward, Recurse recurse = {});
  void set_reshard_after_backward(bool reshard_after_backward, Recurse recurse = {});
  void set_modules_to_forward_prefetch(const std::vector<FSDPModule>& modules);
  void set_modules_to_backward_prefetch(const std::vector<FSDPModule>& modules);
  void set_custom_all_gather(std::shared_ptr<AllGather> comm);
  void set_custom_reduce_scatter(std::shared_ptr<ReduceScatter> comm);
  /// The hook receives the module's reduced gradients as one flat tensor. `stream` is only for modules without HSDP.
  void set_all_reduce_hook(std::function<void(at::Tensor)> hook, std::optional<c10::Stream> stream = std::nullopt);
  /// The next root forward waits for this event instead of the current stream. Valid for one forward: give a new one
  /// each iteration.
  void set_post_optim_event(std::shared_ptr<c10::Event> event);
  void set_gradient_divide_factor(double factor);
  void set_force_sum_reduction_for_comms(bool enable);
  void set_reduce_scatter_unused_params(bool reduce_scatter_unused_params, Recurse recurse = {});
  void set_reduce_scatter_max_input_buffers(int max_input_buffers, Recurse recurse = {});
  void set_separate_reduce_scatter_group(bool enable = true, Recurse recurse = {});
  void set_unshard_in_backward(bool unshard_in_backward);
  /// torch's _set_unshard_async_op: gathers on the current stream, which overlaps only with explicit prefetch.
  void set_unshard_async_op(bool async_op);

  /// For the runtime and for code that reports on it.
  const std::shared_ptr<FSDPState>& state() const { return state_; }

 private:
  template <class Fn>
  void for_each_group(Recurse recurse, Fn fn);
  torch::nn::Module* module_;
  std::shared_ptr<FSDPState> state_;
};

namespace detail {
void pre_forward(const FSDPModule& module, nn::Tensors& arguments);
void post_forward(const FSDPModule& module, nn::Tensors& results);
}  // namespace detail

/// Runs `method(args…)` between FSDP's pre-forward and post-forward. Counterpart of register_fsdp_forward_method: C++
/// cannot replace a method, so the caller wraps the call. For a module without FSDP, this only runs the method.
///
///     auto logits = fsdp::call_as_forward(model, [&](at::Tensor x) { return model->generate(x); }, input);
template <class Method, class... Args>
auto call_as_forward(ModuleRef module, Method&& method, Args... args) {
  const auto run = [&] { return std::forward<Method>(method)(std::as_const(args)...); };
  if (!FSDPModule::is_fsdp_module(*module)) return run();
  const FSDPModule fsdp(module);
  nn::Tensors arguments;
  (nn::visit_tensors(args, [&](at::Tensor& tensor) { arguments.add(tensor); }), ...);
  detail::pre_forward(fsdp, arguments);
  nn::Tensors results;
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
    detail::post_forward(fsdp, results);
    return;
  } else {
    auto result = run();
    nn::visit_tensors(result, [&](at::Tensor& tensor) { results.add(tensor); });
    detail::post_forward(fsdp, results);
    return result;
  }
}

/// Makes several roots (for example pipeline stages) use the streams and buffers of the first.
void share_comm_ctx(const std::vector<FSDPModule>& modules);

}  // namespace plimsoll::fsdp
