#include "plimsoll/fsdp/clip_grad_norm.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/fsdp/param/fsdp_param.h"

namespace plimsoll::fsdp {
namespace {

// Gradients that are sharded over the same ranks. Without a group: whole gradients.
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
  // An empty shard has no largest element; it counts as zero.
  if (grad.numel() == 0) return at::zeros({}, grad.options());
  return at::linalg_vector_norm(grad, norm_type);
}

// For DTensors torch uses foreach operators only on request.
std::vector<at::Tensor> local_norms(const std::vector<at::Tensor>& grads, double norm_type, bool foreach) {
  const auto is_empty = [](const at::Tensor& grad) { return grad.numel() == 0; };
  if (foreach && !(std::isinf(norm_type) && std::any_of(grads.begin(), grads.end(), is_empty))) {
    return at::_foreach_norm(grads, norm_type);
  }
  std::vector<at::Tensor> norms;
  for (const at::Tensor& grad : grads) norms.push_back(norm_of(grad, norm_type));
  return norms;
}

// Reduces norms of parts out of place, like DTensor.
at::Tensor over_ranks(const at::Tensor& norms, const ProcessGroup& group, double norm_type) {
  if (!group || group->getSize() == 1) return norms;
  const auto reduce = [&](const at::Tensor& norm, c10d::ReduceOp::RedOpType op) {
    at::Tensor reduced = norm.clone();
    distributed::all_reduce(reduced, group, op, false, "the norm of gradients");
    return reduced;
  };
  if (std::isinf(norm_type)) return reduce(norms, c10d::ReduceOp::MAX);
  const at::Tensor powers = norms.pow(norm_type);
  const at::Tensor sums = reduce(powers, c10d::ReduceOp::SUM);
  return sums.pow(1.0 / norm_type);
}

// The device on which the group can reduce: that of the gradients, or that of the mesh if they are offloaded and the
// group has no CPU backend.
at::Device reducing_device(const GradsOfGroup& part, at::Device mesh_device) {
  const at::Device device = part.grads[0].device();
  if (!part.group) return device;
  const auto known = part.group->getDeviceTypes();
  return std::find(known.begin(), known.end(), device.type()) == known.end() ? mesh_device : device;
}

at::Device mesh_device_of(at::TensorList parameters, at::Device otherwise) {
  for (const at::Tensor& parameter : parameters) {
    if (const FSDPParam* const param = managed(parameter)) return param->device();
  }
  return otherwise;
}

}  // namespace

at::Tensor get_total_norm(at::TensorList parameters, const nn::ClipGradNormOptions& options) {
  const at::NoGradGuard no_grad;
  const double norm_type = options.norm_type;
  TORCH_CHECK_VALUE(norm_type > 0, "Expected a norm of positive order, found ", norm_type, '.');
  const auto groups = by_group(parameters);
  if (groups.empty()) return at::scalar_tensor(0.0);
  const at::Device mesh_device = mesh_device_of(parameters, groups[0].grads[0].device());
  // Tensors that Python's frames still reference when the total is computed.
  std::vector<at::Tensor> held;
  std::vector<at::Tensor> norms;
  for (const GradsOfGroup& part : groups) {
    const at::Device device = reducing_device(part, mesh_device);
    std::vector<at::Tensor> local = local_norms(part.grads, norm_type, options.foreach.value_or(false));
    for (at::Tensor& norm : local) norm = norm.to(device);
    const at::Tensor stacked = at::stack(local);
    held.insert(held.end(), local.begin(), local.end());
    held.push_back(stacked);
    norms.push_back(over_ranks(stacked, part.group, norm_type));
    if (norms.back().device() != norms.front().device()) norms.back() = norms.back().to(norms.front().device());
  }
  at::Tensor total = at::linalg_vector_norm(norms.size() == 1 ? norms[0] : at::cat(norms), norm_type);
  TORCH_CHECK(!options.error_if_nonfinite || std::isfinite(total.item().toDouble()), "The norm of order ", norm_type,
              " of the gradients is ", total.item().toDouble(),
              ", so they cannot be clipped. Look for the operation that overflowed, or leave "
              "error_if_nonfinite at false to scale by it anyway.");
  return total;
}

at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const nn::ClipGradNormOptions& options) {
  at::Tensor total = fsdp::get_total_norm(parameters, options);
  nn::clip_grads_with_norm_(parameters, max_norm, total, options.foreach.value_or(false));
  return total;
}

}  // namespace plimsoll::fsdp
