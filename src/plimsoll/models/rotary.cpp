#include "plimsoll/models/rotary.h"

#include <ATen/Functions.h>

#include <vector>

#include "plimsoll/nn/device_scope.h"

namespace plimsoll::models {
namespace {

at::Tensor as_pairs(const at::Tensor& x) {
  std::vector<std::int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
  sizes.insert(sizes.end(), {-1, 2});
  return at::view_as_complex(x.to(at::kFloat).reshape(sizes));
}

}  // namespace

at::Tensor rotations(std::int64_t head_dim, std::int64_t positions, double theta) {
  const nn::DeviceScope cpu(at::kCPU);  // polar does not support meta.
  const auto single = at::TensorOptions(at::kFloat);
  const auto exponents = at::arange(0, head_dim, 2, single) / static_cast<double>(head_dim);
  const auto speeds = at::reciprocal(at::pow(theta, exponents));
  const auto angles = at::outer(at::arange(positions, single), speeds);
  return at::polar(at::ones_like(angles), angles);
}

std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k, const at::Tensor& turns) {
  const auto q_pairs = as_pairs(q);
  const auto k_pairs = as_pairs(k);
  const auto length = q_pairs.size(1);
  const auto by = turns.slice(0, 0, length).view({1, length, 1, q_pairs.size(-1)});
  const auto q_turned = at::view_as_real(q_pairs * by).flatten(3);
  const auto k_turned = at::view_as_real(k_pairs * by).flatten(3);
  auto new_q = q_turned.to(q.scalar_type());
  auto new_k = k_turned.to(k.scalar_type());
  return {std::move(new_q), std::move(new_k)};
}

}  // namespace plimsoll::models
