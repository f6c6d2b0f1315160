#include "plimsoll/nn/optim/foreach.h"

#include <ATen/native/ForeachUtils.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll::nn {
namespace {

std::vector<std::optional<at::Tensor>> to_optional(const std::vector<at::Tensor>& tensors) {
  std::vector<std::optional<at::Tensor>> found;
  found.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) found.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
  return found;
}

TensorTuple to_tuple(const std::vector<std::optional<at::Tensor>>& tensors) {
  std::vector<at::Tensor> found;
  found.reserve(tensors.size());
  for (const auto& tensor : tensors) found.push_back(tensor.value_or(at::Tensor()));
  return found;
}

}  // namespace

bool prefers_foreach(c10::DeviceType device) {
  return device == c10::kCUDA || device == c10::kXPU || device == c10::kMTIA || device == c10::kPrivateUse1;
}

Implementation choose_implementation(Implementation asked, at::TensorList parameters) {
  if (asked != Implementation::kDefault) return asked;
  const bool foreach = std::all_of(parameters.begin(), parameters.end(), [](const at::Tensor& parameter) {
    return prefers_foreach(parameter.device().type());
  });
  return foreach ? Implementation::kForeach : Implementation::kForLoop;
}

void check_fused(std::string_view optimizer, const at::Tensor& parameter) {
  const c10::DeviceType device = parameter.device().type();
  const bool has_kernel = prefers_foreach(device) || device == c10::kCPU || device == c10::kMPS || device == c10::kHPU;
  TORCH_CHECK(has_kernel && parameter.is_floating_point(), "the fused form of ", optimizer,
              " steps floating-point parameters on CPU, CUDA, XPU, HPU, MTIA or MPS; one of shape ", parameter.sizes(),
              " is ", parameter.scalar_type(), " on ", parameter.device(),
              ". Choose Implementation::kForeach or kForLoop for its group");
}

std::vector<TensorGroup> group_by_device_and_dtype(const std::vector<std::vector<at::Tensor>>& lists) {
  at::native::nested_optional_tensorvec_t nested;
  for (const auto& list : lists) nested.push_back(to_optional(list));
  std::vector<TensorGroup> groups;
  for (const auto& [key, found] : at::native::_group_tensors_by_first_tensors_device_and_dtype(nested, true)) {
    TensorGroup group{key.first, {}, found.second};
    for (const auto& list : found.first) group.lists.push_back(to_tuple(list));
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace plimsoll::nn
