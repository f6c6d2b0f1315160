#include <ATen/Functions.h>

#include <cmath>
#include <cstddef>

#include "plimsoll/nn/optim/adam_update.h"
#include "plimsoll/nn/optim/python_values.h"

// Mirrors _single_tensor_adam (torch 2.13).
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

}  // namespace plimsoll::nn
