#include "plimsoll/fsdp/clip_grad_norm.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/fsdp/fsdp_param.h"

namespace plimsoll::fsdp {
namespace {

// The gradients whose parts the same ranks hold; without a group: held whole.
struct GradsOfGroup {
  ProcessGroup group;
  std::vector<at::Tensor> grads;
};

std::vector<GradsOfGroup> by_group(at::TensorList parameters) {
  std::vector<GradsOfGroup> groups;
  for (const at::Tensor& parameter : parameters) {
    const FSDPParam* const param = managed(parameter);
    const ProcessGroup group = param == nullptr ? ProcessGroup() : param->mesh_info()->shard_process_group;
    if (!parameter.grad().defined()) continue;
    auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.group == group; });
    if (found == groups.end()) found = groups.insert(groups.end(), GradsOfGroup{group, {}});
    found->grads.push_back(parameter.grad());
  }
  return groups;
}

at::Tensor norm_of(const at::Tensor& grad, double norm_type) {
  // The largest element of an empty shard does not exist; it counts as zero.
  if (grad.numel() == 0) return at::zeros({}, grad.options());
  return at::linalg_vector_norm(grad, norm_type);
}

// One norm for each gradient, over all ranks of the group.
at::Tensor norms_of(const GradsOfGroup& of, double norm_type, at::Device device) {
  std::vector<at::Tensor> local;
  for (const at::Tensor& grad : of.grads) local.push_back(norm_of(grad, norm_type).to(device));
  at::Tensor norms = at::stack(local);
  if (!of.group || of.group->getSize() == 1) return norms;
  if (std::isinf(norm_type)) {
    distributed::all_reduce(norms, of.group, c10d::ReduceOp::MAX, false, "the norm of gradients");
    return norms;
  }
  norms = norms.pow(norm_type);
  distributed::all_reduce(norms, of.group, c10d::ReduceOp::SUM, false, "the norm of gradients");
  return norms.pow(1.0 / norm_type);
}

}  // namespace

at::Tensor get_total_norm(at::TensorList parameters, const nn::ClipGradNormOptions& options) {
  const at::NoGradGuard no_grad;
  const double norm_type = options.norm_type;
  TORCH_CHECK_VALUE(norm_type > 0, "Expected a norm of positive order, found ", norm_type, '.');
  const auto groups = by_group(parameters);
  if (groups.empty()) return at::scalar_tensor(0.0);
  // Collectives need a device that their group knows: that of the mesh, where shards are offloaded.
  at::Device device = groups[0].grads[0].device();
  for (const at::Tensor& parameter : parameters) {
    if (const FSDPParam* const param = managed(parameter)) {
      device = param->device();
      break;
    }
  }
  std::vector<at::Tensor> norms;
  for (const GradsOfGroup& of : groups) norms.push_back(norms_of(of, norm_type, device));
  at::Tensor total = at::linalg_vector_norm(norms.size() == 1 ? norms[0] : at::cat(norms), norm_type);
  TORCH_CHECK(!options.error_if_nonfinite || std::isfinite(total.item().toDouble()), "The norm of order ", norm_type,
              " of the gradients is ", total.item().toDouble(),
              ", and gradients cannot be clipped by it. Look for the operation that overflowed, or leave "
              "error_if_nonfinite at false to scale by it all the same.");
  return total;
}

at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const nn::ClipGradNormOptions& options) {
  at::Tensor total = fsdp::get_total_norm(parameters, options);
  nn::clip_grads_with_norm_(parameters, max_norm, total, options.foreach);
  return total;
}

}  // namespace plimsoll::fsdp
