#include "plimsoll/nn/optim/implementation.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace plimsoll::nn {

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

}  // namespace plimsoll::nn
