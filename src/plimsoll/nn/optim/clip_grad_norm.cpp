#include "plimsoll/nn/optim/clip_grad_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "plimsoll/nn/optim/foreach.h"
#include "plimsoll/nn/optim/python_values.h"

// See [Note: order of frees] in adam_update.cpp.

namespace plimsoll::nn {
namespace {

std::vector<at::Tensor> gradients_of(at::TensorList parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

bool use_foreach(std::optional<bool> asked, at::Device device) {
  const bool supported = device.is_cpu() || prefers_foreach(device.type());
  TORCH_CHECK(supported || !asked.value_or(false), "foreach = true, but torch has no foreach operators on ", device,
              ": leave the option out, or set it to false");
  return supported && asked.value_or(true);
}

at::Tensor norm_of_norms(const std::vector<at::Tensor>& norms, at::Device device, double norm_type) {
  std::vector<at::Tensor> moved;
  for (const at::Tensor& norm : norms) moved.push_back(norm.to(device));
  const TensorTuple there(std::move(moved));
  at::Tensor stacked = at::stack(there);
  return at::linalg_vector_norm(stacked, norm_type);
}

bool is_finite(const at::Tensor& norm) {
  const at::Tensor is_infinite_or_nan = [&] {
    at::Tensor is_nan = norm.isnan();
    at::Tensor is_inf = norm.isinf();
    at::Tensor either = at::logical_or(is_nan, is_inf);
    is_nan.reset();
    return either;
  }();
  return !is_infinite_or_nan.item().toBool();
}

/// number / (tensor + 1e-6), as Python computes it.
at::Tensor coefficient(double max_norm, const at::Tensor& total_norm) {
  const at::Tensor sum = total_norm.add(as_tensor(1e-6));
  return sum.reciprocal().mul(as_tensor(max_norm));
}

}  // namespace

at::Tensor get_total_norm(at::TensorList tensors, const ClipGradNormOptions& options) {
  const at::NoGradGuard without_gradients;
  if (tensors.empty()) return at::scalar_tensor(0.0);
  std::vector<at::Tensor> found;
  for (const TensorGroup& group : group_by_device_and_dtype({tensors.vec()})) {
    const TensorTuple& of_device = group.lists[0];
    if (use_foreach(options.foreach, group.device)) {
      for (at::Tensor& norm : at::_foreach_norm(of_device, options.norm_type)) found.push_back(std::move(norm));
    } else {
      for (const at::Tensor& tensor : of_device) found.push_back(at::linalg_vector_norm(tensor, options.norm_type));
    }
  }
  const TensorTuple norms(std::move(found));
  at::Tensor total = norm_of_norms({norms.begin(), norms.end()}, tensors[0].device(), options.norm_type);
  TORCH_CHECK(!options.error_if_nonfinite || is_finite(total), "the norm of order ", options.norm_type,
              " of the gradients is ", total.item().toDouble(),
              ", so they cannot be clipped. Look for the operation that overflowed, or leave "
              "error_if_nonfinite at false to scale by it anyway");
  return total;
}

void clip_grads_with_norm_(at::TensorList parameters, double max_norm, const at::Tensor& total_norm,
                           std::optional<bool> foreach) {
  const at::NoGradGuard without_gradients;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return;
  const std::vector<TensorGroup> groups = group_by_device_and_dtype({gradients});
  at::Tensor clamped_there, clamped, coef;
  coef = coefficient(max_norm, total_norm);
  clamped = at::clamp(coef, std::nullopt, 1.0);
  for (const TensorGroup& group : groups) {
    const TensorTuple& of_device = group.lists[0];
    if (use_foreach(foreach, group.device)) {
      at::_foreach_mul_(of_device, clamped.to(group.device));
    } else {
      clamped_there = clamped.to(group.device);
      for (const at::Tensor& gradient : of_device) gradient.mul_(clamped_there);
    }
  }
}

at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const ClipGradNormOptions& options) {
  at::Tensor total = get_total_norm(gradients_of(parameters), options);
  clip_grads_with_norm_(parameters, max_norm, total, options.foreach);
  return total;
}

at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, double norm_type, bool error_if_nonfinite,
                           std::optional<bool> foreach) {
  return clip_grad_norm_(parameters, max_norm,
                         {.norm_type = norm_type, .error_if_nonfinite = error_if_nonfinite, .foreach = foreach});
}

}  // namespace plimsoll::nn
