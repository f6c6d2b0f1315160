#include "plimsoll/nn/optim/adam_update.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <cstddef>

#include "plimsoll/nn/optim/foreach.h"
#include "plimsoll/nn/optim/python_values.h"

// Mirrors _single_tensor_adam, _multi_tensor_adam and _fused_adam (torch 2.13).
//
// [Note: order of frees] A Python local lives until its next assignment (the new value exists before the old one is
// freed). On return, locals are freed in the order in which the function first names them. Temporaries of an expression
// are freed directly after use. So here each Python local is a variable of the whole function, declared in the opposite
// order, and each temporary is a local of a small function.

namespace plimsoll::nn {
namespace {

/// number / tensor, as Python computes it.
at::Tensor divide(double number, const at::Tensor& tensor) { return tensor.reciprocal().mul(as_tensor(number)); }

at::Tensor one_minus_power(double beta, const at::Tensor& step) { return at::rsub(at::pow(beta, step), 1); }

at::Tensor denominator(const at::Tensor& exp_avg_sq, double bias_correction2_sqrt, double eps) {
  return exp_avg_sq.sqrt().div(as_tensor(bias_correction2_sqrt)).add_(as_tensor(eps));
}

at::Tensor quotient(const at::Tensor& exp_avg_sq, const at::Tensor& bias_correction2_sqrt,
                    const at::Tensor& step_size_neg) {
  at::Tensor root = exp_avg_sq.sqrt();
  at::Tensor scale = bias_correction2_sqrt.mul(step_size_neg);
  at::Tensor result = root.div(scale);
  root.reset();
  return result;
}

at::Tensor capturable_denominator(const at::Tensor& exp_avg_sq, const at::Tensor& bias_correction2_sqrt,
                                  const at::Tensor& step_size_neg, double eps) {
  at::Tensor result = quotient(exp_avg_sq, bias_correction2_sqrt, step_size_neg);
  result.add_(divide(eps, step_size_neg));
  return result;
}

std::vector<TensorGroup> group(const AdamLists& lists) {
  return group_by_device_and_dtype(
      {lists.parameters, lists.gradients, lists.exp_avgs, lists.exp_avg_sqs, lists.max_exp_avg_sqs, lists.steps});
}

/// The tensors of a group by their names.
struct DeviceLists {
  explicit DeviceLists(const TensorGroup& group)
      : parameters(group.lists[0]),
        gradients(group.lists[1]),
        exp_avgs(group.lists[2]),
        exp_avg_sqs(group.lists[3]),
        max_exp_avg_sqs(group.lists[4]),
        steps(group.lists[5]) {}

  TensorTuple parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps;
};

/// Increments the step, decays the weights, and updates both averages. Consumes the gradients.
void update_averages(const DeviceLists& on, TensorTuple gradients, const AdamOptions& options) {
  const auto [beta1, beta2] = options.betas;
  if (options.maximize) gradients = at::_foreach_neg(gradients);
  if (on.steps[0].is_cpu()) {
    at::_foreach_add_(on.steps, at::scalar_tensor(1.0, at::TensorOptions().device(at::kCPU)), 1.0);
  } else {
    at::_foreach_add_(on.steps, 1);
  }
  if (options.weight_decay != 0) {
    if (options.decoupled_weight_decay) {
      at::_foreach_mul_(on.parameters, 1 - options.lr * options.weight_decay);
    } else if (options.maximize) {
      at::_foreach_add_(gradients, on.parameters, options.weight_decay);
    } else {
      gradients = at::_foreach_add(gradients, on.parameters, options.weight_decay);
    }
  }
  at::_foreach_lerp_(on.exp_avgs, gradients, 1 - beta1);
  at::_foreach_mul_(on.exp_avg_sqs, beta2);
  at::_foreach_addcmul_(on.exp_avg_sqs, gradients, gradients, 1 - beta2);
}

TensorTuple root_of_second_moment(const DeviceLists& on, bool amsgrad) {
  if (!amsgrad) return at::_foreach_sqrt(on.exp_avg_sqs);
  at::_foreach_maximum_(on.max_exp_avg_sqs, on.exp_avg_sqs);
  return at::_foreach_sqrt(on.max_exp_avg_sqs);
}

}  // namespace

void adam_for_loop(const AdamLists& lists, const AdamOptions& options) {
  const auto [beta1, beta2] = options.betas;
  at::Tensor denom, bias_correction2_sqrt, step_size_neg, step_size, bias_correction2, bias_correction1, grad;
  if (options.capturable) check_capturable(lists);
  for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
    const at::Tensor& param = lists.parameters[i];
    const at::Tensor& exp_avg = lists.exp_avgs[i];
    const at::Tensor& exp_avg_sq = lists.exp_avg_sqs[i];
    const at::Tensor& step = lists.steps[i];
    grad = options.maximize ? lists.gradients[i].neg() : lists.gradients[i];

    step.add_(as_tensor(1));
    if (options.weight_decay != 0) {
      if (options.decoupled_weight_decay) {
        param.mul_(as_tensor(1 - options.lr * options.weight_decay));
      } else {
        grad = grad.add(param, options.weight_decay);
      }
    }
    exp_avg.lerp_(grad, 1 - beta1);
    exp_avg_sq.mul_(as_tensor(beta2)).addcmul_(grad, grad, 1 - beta2);

    if (options.capturable) {
      bias_correction1 = one_minus_power(beta1, step);
      bias_correction2 = one_minus_power(beta2, step);
      step_size = divide(options.lr, bias_correction1);
      step_size_neg = step_size.neg();
      bias_correction2_sqrt = bias_correction2.sqrt();
      if (options.amsgrad) lists.max_exp_avg_sqs[i].copy_(at::maximum(lists.max_exp_avg_sqs[i], exp_avg_sq));
      const at::Tensor& second = options.amsgrad ? lists.max_exp_avg_sqs[i] : exp_avg_sq;
      denom = capturable_denominator(second, bias_correction2_sqrt, step_size_neg, options.eps);
      param.addcdiv_(exp_avg, denom);
    } else {
      const double count = step.item().toDouble();
      const double correction1 = 1 - std::pow(beta1, count);
      const double correction2 = 1 - std::pow(beta2, count);
      if (options.amsgrad) {
        at::Tensor maximum = lists.max_exp_avg_sqs[i];
        at::maximum_out(maximum, maximum, exp_avg_sq);
      }
      const at::Tensor& second = options.amsgrad ? lists.max_exp_avg_sqs[i] : exp_avg_sq;
      denom = denominator(second, std::pow(correction2, 0.5), options.eps);
      param.addcdiv_(exp_avg, denom, -(options.lr / correction1));
    }
  }
}

void check_capturable(const AdamLists& lists) {
  for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
    const c10::Device device = lists.parameters[i].device();
    const bool supported = device.is_cuda() || device.is_xpu() || device.is_hpu() || device.is_privateuseone();
    TORCH_CHECK(supported && lists.steps[i].device().type() == device.type(),
                "capturable needs the parameter and its step count on one accelerator; a parameter of shape ",
                lists.parameters[i].sizes(), " is on ", device, " and its step count on ", lists.steps[i].device(),
                ". Choose capturable before the first step, and for parameters on an accelerator only");
  }
}

void adam_foreach(const AdamLists& lists, const AdamOptions& options) {
  if (lists.parameters.empty()) return;
  if (options.capturable) check_capturable(lists);
  const auto [beta1, beta2] = options.betas;
  TensorTuple exp_avg_sq_sqrt, bias_correction2_sqrt, step_size, bias_correction2, bias_correction1;
  for (const TensorGroup& device_group : group(lists)) {
    const DeviceLists on(device_group);
    update_averages(on, on.gradients, options);
    if (options.capturable) {
      bias_correction1 = at::_foreach_pow(beta1, on.steps);
      bias_correction2 = at::_foreach_pow(beta2, on.steps);
      at::_foreach_sub_(bias_correction1, 1);
      at::_foreach_sub_(bias_correction2, 1);
      at::_foreach_neg_(bias_correction2);
      at::_foreach_div_(bias_correction1, options.lr);
      at::_foreach_reciprocal_(bias_correction1);
      at::_foreach_sqrt_(bias_correction2);
      step_size = bias_correction1;
      bias_correction2_sqrt = bias_correction2;
      exp_avg_sq_sqrt = root_of_second_moment(on, options.amsgrad);
      at::_foreach_div_(exp_avg_sq_sqrt, at::TensorList(bias_correction2_sqrt));
      at::_foreach_add_(exp_avg_sq_sqrt, options.eps);
      at::_foreach_div_(exp_avg_sq_sqrt, at::TensorList(step_size));
      at::_foreach_addcdiv_(on.parameters, on.exp_avgs, exp_avg_sq_sqrt);
    } else {
      std::vector<at::Scalar> roots, sizes;
      for (const at::Tensor& step : on.steps) {
        const double count = step.item().toDouble();
        sizes.emplace_back(options.lr / (1 - std::pow(beta1, count)) * -1);
        roots.emplace_back(std::pow(1 - std::pow(beta2, count), 0.5));
      }
      exp_avg_sq_sqrt = root_of_second_moment(on, options.amsgrad);
      at::_foreach_div_(exp_avg_sq_sqrt, at::ArrayRef<at::Scalar>(roots));
      at::_foreach_add_(exp_avg_sq_sqrt, options.eps);
      at::_foreach_addcdiv_(on.parameters, on.exp_avgs, exp_avg_sq_sqrt, at::ArrayRef<at::Scalar>(sizes));
    }
  }
}

void adam_fused(const AdamLists& lists, const AdamOptions& options) {
  if (lists.parameters.empty()) return;
  const auto update = options.decoupled_weight_decay ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call;
  for (const TensorGroup& device_group : group(lists)) {
    const DeviceLists on(device_group);
    at::_foreach_add_(on.steps, 1);
    update(on.parameters, on.gradients, on.exp_avgs, on.exp_avg_sqs, on.max_exp_avg_sqs, on.steps, options.lr,
           options.betas[0], options.betas[1], options.weight_decay, options.eps, options.amsgrad, options.maximize,
           std::nullopt, std::nullopt);
  }
}

}  // namespace plimsoll::nn
