#include "plimsoll/fsdp/group/post_backward.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <mutex>
#include <utility>

#include "plimsoll/fsdp/group/fsdp_param_group.h"

namespace plimsoll::fsdp {
namespace {

// torch's C++ custom functions do not look into vectors of tensors, and autograd must see one node for all of them.
class RegisterPostBackwardNode final : public torch::autograd::Node {
 public:
  explicit RegisterPostBackwardNode(std::shared_ptr<FSDPParamGroup> group) : group_(std::move(group)) {}

  std::string name() const override { return "RegisterPostBackward"; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) grads[i] = input_metadata(i).zeros_like();
    }
    const std::lock_guard lock(group_->comm_ctx->mutex);
    group_->post_backward();
    return std::move(grads);
  }

 private:
  std::shared_ptr<FSDPParamGroup> group_;
};

}  // namespace

std::vector<at::Tensor> register_post_backward(std::shared_ptr<FSDPParamGroup> group,
                                               const std::vector<at::Tensor>& inputs) {
  const c10::intrusive_ptr<torch::autograd::Node> node =
      c10::make_intrusive<RegisterPostBackwardNode>(std::move(group));
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& input : inputs) {
    {
      const at::NoGradGuard no_grad;
      outputs.push_back(input.view_as(input));
    }
    torch::autograd::set_history(outputs.back(), node);
    // Autograd refuses in-place writes to it with its message for outputs of custom functions.
    if (auto* view = torch::autograd::impl::get_view_autograd_meta(outputs.back())) {
      view->set_creation_meta(torch::autograd::CreationMeta::IN_CUSTOM_FUNCTION);
    }
  }
  return outputs;
}

}  // namespace plimsoll::fsdp
