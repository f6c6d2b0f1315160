#include "plimsoll/models/mixture_of_experts.h"

#include <ATen/Functions.h>

#include "plimsoll/models/layers.h"

namespace plimsoll::models {
namespace {

/// In bf16: not all cards support another dtype.
at::Tensor grouped_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends) {
  return at::_grouped_mm(x, weight.to(at::kBFloat16).transpose(-2, -1), ends);
}

}  // namespace

RouterImpl::RouterImpl(std::int64_t dim, const architecture::Experts& experts) : per_token_(experts.per_token) {
  gate_ = register_module("gate", linear(dim, experts.count, /*bias=*/false));
}

std::tuple<at::Tensor, at::Tensor> RouterImpl::forward(at::Tensor x) {
  auto scores = gate_(x);
  scores = at::softmax(scores.to(at::kFloat), 1);
  auto [top, chosen] = at::topk(scores, per_token_, 1);
  top = top / top.sum(-1, /*keepdim=*/true);
  return {top, chosen};
}

GroupedExpertsImpl::GroupedExpertsImpl(std::int64_t dim, const architecture::Experts& experts) {
  w1_ = register_parameter("w1", at::empty({experts.count, experts.hidden, dim}));
  w2_ = register_parameter("w2", at::empty({experts.count, dim, experts.hidden}));
  w3_ = register_parameter("w3", at::empty({experts.count, experts.hidden, dim}));
}

at::Tensor GroupedExpertsImpl::forward(at::Tensor x, at::Tensor rows) {
  const auto ends = at::cumsum(rows, 0, at::kInt);
  const auto given = x.to(at::kBFloat16);
  auto h = grouped_product(given, w1_, ends);
  h = at::silu(h);
  {
    const auto up = grouped_product(given, w3_, ends);
    h = h * up;
  }
  return grouped_product(h, w2_, ends).to(x.scalar_type());
}

MixtureOfExpertsImpl::MixtureOfExpertsImpl(std::int64_t dim, const architecture::Experts& experts)
    : count_(experts.count), per_token_(experts.per_token) {
  router_ = register_module("router", Router(dim, experts));
  experts_ = register_module("experts", GroupedExperts(dim, experts));
}

at::Tensor MixtureOfExpertsImpl::forward(at::Tensor x) {
  const auto batch = x.size(0), length = x.size(1), dim = x.size(2);
  x = x.view({-1, dim});
  auto [top, chosen] = router_(x);
  chosen = chosen.view(-1);
  const auto rows = at::histc(chosen, count_, 0, count_);
  const auto order = at::argsort(chosen, /*stable=*/true);
  const auto weights = top.view(-1).index({order});
  const auto tokens = at::floor_divide(order, per_token_).reshape({-1, 1}).expand({-1, dim});
  auto routed = at::gather(x, 0, tokens);
  routed = experts_(routed, rows);
  {
    auto weighted = routed.to(at::kFloat);
    weighted = weighted * weights.reshape({-1, 1});
    routed = weighted.to(x.scalar_type());
  }
  auto out = at::zeros_like(x);
  out = out.scatter_add(0, tokens, routed);
  return out.reshape({batch, length, dim});
}

}  // namespace plimsoll::models
