#include <c10/util/Exception.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/nn/hooks/autograd_hooks.h"

namespace plimsoll::nn {
namespace {

using torch::autograd::Node;

// The node that computes or accumulates a tensor's gradient. Held weakly: the node or the tensor owns the hooks, which
// would keep their owner alive. A leaf's node is looked up each time, because it lives only as long as the graphs that
// use it.
class GradientNode {
 public:
  explicit GradientNode(const at::Tensor& tensor) {
    if (tensor.is_leaf()) {
      leaf_ = tensor.getIntrusivePtr();
    } else {
      node_ = tensor.grad_fn();
    }
  }

  c10::intrusive_ptr<Node> get() const {
    if (auto node = node_.lock()) return node;
    auto leaf = leaf_.lock();
    if (!leaf) return {};
    return torch::autograd::impl::try_get_grad_accumulator(at::Tensor(std::move(leaf)));
  }

 private:
  c10::weak_intrusive_ptr<Node> node_{c10::intrusive_ptr<Node>()};
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> leaf_{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
};

// Mirrors torch._C._will_engine_execute_node (torch 2.13), which refuses leaves with a gradient that grad() returns,
// because node hooks do not run there. Tensor hooks do.
bool will_execute(Node* node) {
  if (node == nullptr) return false;
  const auto* nodes = torch::autograd::get_current_graph_task_nodes_in_graph();
  if (nodes->find(node) == nodes->end()) return false;
  const auto* wanted = torch::autograd::get_current_graph_task_exec_info();
  if (wanted->empty()) return true;
  const auto found = wanted->find(node);
  return found != wanted->end() && found->second.should_execute();
}

class MultiGrad final : public HookOwner {
 public:
  MultiGrad(const std::vector<at::Tensor>& tensors, MultiGradHook hook, MultiGradMode mode)
      : hook_(std::move(hook)), mode_(mode) {
    if (mode == MultiGradMode::kAny) return;
    for (const at::Tensor& tensor : tensors) nodes_.emplace_back(tensor);
  }

  void add(HookHandle handle) { handles_.push_back(std::move(handle)); }

  void remove_hook(std::uint64_t) noexcept override {
    for (HookHandle& handle : handles_) handle.remove();
  }

  void computed(std::size_t index, const at::Tensor& gradient) {
    const int pass = torch::autograd::get_current_graph_task_id();
    std::vector<at::Tensor> ready;
    {
      const std::lock_guard lock(mutex_);
      auto [found, is_first] = passes_.try_emplace(pass);
      Pass& state = found->second;
      if (is_first) {
        state.awaited = mode_ == MultiGradMode::kAny ? 1 : count_awaited();
        // A pass that ends without the last gradient must not leave state behind.
        queue_callback([self = weak_self, pass] {
          if (const auto alive = self.lock()) alive->forget(pass);
        });
        state.gradients.resize(mode_ == MultiGradMode::kAny ? 1 : nodes_.size());
      }
      if (state.computed++ >= state.awaited) return;
      state.gradients[mode_ == MultiGradMode::kAny ? 0 : index] = gradient;
      if (state.computed != state.awaited) return;
      ready.swap(state.gradients);
      if (mode_ == MultiGradMode::kAll) passes_.erase(found);
    }
    hook_(ready);
  }

  std::weak_ptr<MultiGrad> weak_self;

 private:
  struct Pass {
    std::size_t awaited = 0;
    std::size_t computed = 0;
    std::vector<at::Tensor> gradients;
  };

  std::size_t count_awaited() const {
    return std::ranges::count_if(nodes_, [](const GradientNode& node) { return will_execute(node.get().get()); });
  }

  void forget(int pass) {
    std::vector<at::Tensor> dropped;
    const std::lock_guard lock(mutex_);
    const auto found = passes_.find(pass);
    if (found == passes_.end()) return;
    dropped.swap(found->second.gradients);
    passes_.erase(found);
  }

  MultiGradHook hook_;
  MultiGradMode mode_;
  std::vector<GradientNode> nodes_;
  std::vector<HookHandle> handles_;
  std::mutex mutex_;
  std::unordered_map<int, Pass> passes_;
};

}  // namespace

HookHandle register_multi_grad_hook(const std::vector<at::Tensor>& tensors, MultiGradHook hook, MultiGradMode mode) {
  if (mode == MultiGradMode::kAll) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      TORCH_CHECK(tensors[i].requires_grad(), "Expected tensors that require a gradient, found tensor ", i,
                  " of shape ", tensors[i].sizes(),
                  ", which does not: leave it out, or use MultiGradMode::kAny, which ignores it.");
    }
  }
  if (tensors.size() == 1 && tensors.front().requires_grad()) {
    // A pass computes one tensor's gradient once: no need to count.
    return register_tensor_hook(tensors.front(), [hook = std::move(hook)](const at::Tensor& gradient) {
      hook({gradient});
      return at::Tensor();
    });
  }
  const auto multi = std::make_shared<MultiGrad>(tensors, std::move(hook), mode);
  multi->weak_self = multi;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].requires_grad()) continue;
    multi->add(register_tensor_hook(tensors[i], [multi, i](const at::Tensor& gradient) {
      multi->computed(i, gradient);
      return at::Tensor();
    }));
  }
  return HookHandle(multi, 0);
}

}  // namespace plimsoll::nn
