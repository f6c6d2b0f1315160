#include "plimsoll/nn/optim/tensor_groups.h"

#include <ATen/native/ForeachUtils.h>

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
