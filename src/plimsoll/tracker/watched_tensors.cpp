#include "plimsoll/tracker/watched_tensors.h"

#include <utility>

#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/holders.h"
#include "plimsoll/nn/autograd_hooks.h"
#include "plimsoll/nn/module_contents.h"

namespace plimsoll {

namespace categories = ledger::categories;

namespace {

/// The first, of a wrapper that has several.
std::uint64_t allocation_of(const at::Tensor& tensor) {
  std::uint64_t allocation = 0;
  capture::for_each_holder(tensor, [&](const at::Tensor& holder) {
    if (allocation != 0) return;
    if (const auto found = capture::find(holder)) allocation = ledger::value(found->id);
  });
  return allocation;
}

}  // namespace

WatchedTensors::~WatchedTensors() {
  for (auto& [key, watched] : watched_) {
    for (auto& handle : watched.handles) handle.remove();
  }
}

void WatchedTensors::leave_to(const ManagedParameters* managed, ledger::CategoryId state) {
  books_->set_state_category(state);
  std::lock_guard lock(mutex_);
  managed_ = managed;
  state_category_ = state;
}

void WatchedTensors::add(torch::nn::Module& module, const std::string& fqn) {
  add_own(module, fqn);
  for (const auto& [name, child] : nn::children_of(module)) add(*child, fqn + "." + name);
}

void WatchedTensors::add_own(torch::nn::Module& module, const std::string& fqn) {
  const auto owner = books_->owner(fqn);
  const auto parameters = nn::parameters_of(module), buffers = nn::buffers_of(module);
  std::lock_guard lock(mutex_);
  for (const auto& parameter : parameters) {
    if (managed_ != nullptr && managed_->owner_of(parameter)) continue;
    watch(parameter, categories::kParameter, module, owner);
  }
  for (const auto& buffer : buffers) watch(buffer, categories::kBuffer, module, owner);
}

void WatchedTensors::watch(const at::Tensor& tensor, ledger::CategoryId category, const torch::nn::Module& module,
                           ledger::OwnerId owner) {
  const auto [entry, is_new] = watched_.try_emplace(
      tensor.unsafeGetTensorImpl(),
      Watched{c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>(tensor.getIntrusivePtr()),
              &module,
              category,
              owner,
              0,
              {}});
  auto& watched = entry->second;
  if (!is_new && watched.module == &module) watched.owner = owner;  // The module may have got another path.
  name(tensor, watched);
}

void WatchedTensors::name(const at::Tensor& tensor, Watched& watched) {
  books_->name_tensor(tensor, watched.category, watched.owner);
  watched.allocation = allocation_of(tensor);
  if (watched.category != categories::kParameter) return;
  if (tensor.grad().defined()) books_->name_tensor(tensor.grad(), categories::kGradient, watched.owner);
  if (tensor.requires_grad() && watched.handles.empty()) hook_gradients(tensor, watched);
}

/// Both as it is computed, and as it stands in the parameter: what accumulates may be another tensor.
void WatchedTensors::hook_gradients(const at::Tensor& parameter, Watched& watched) {
  // Weakly, because a hook on a tensor may outlive the tracker.
  const auto name = [self = weak_from_this(), key = parameter.unsafeGetTensorImpl()](const at::Tensor& gradient) {
    if (const auto alive = self.lock()) alive->name_gradient(key, gradient);
  };
  watched.handles.push_back(nn::register_tensor_hook(parameter, [name](const at::Tensor& gradient) {
    name(gradient);
    return at::Tensor();
  }));
  watched.handles.push_back(
      nn::register_post_accumulate_grad_hook(parameter, [name](const at::Tensor& tensor) { name(tensor.grad()); }));
}

void WatchedTensors::name_gradient(c10::TensorImpl* parameter, const at::Tensor& gradient) {
  if (!books_->tracking() || !gradient.defined()) return;
  std::optional<ledger::OwnerId> owner;
  {
    std::lock_guard lock(mutex_);
    const auto entry = watched_.find(parameter);
    if (entry != watched_.end()) owner = entry->second.owner;
  }
  if (owner) books_->name_tensor(gradient, categories::kGradient, *owner);
}

void WatchedTensors::look_again() {
  std::lock_guard lock(mutex_);
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    auto& watched = entry->second;
    const auto alive = watched.tensor.lock();
    if (!alive) {
      entry = watched_.erase(entry);
      continue;
    }
    const at::Tensor tensor(alive);
    if (managed_ != nullptr && managed_->owner_of(tensor)) {  // By now.
      for (auto& handle : watched.handles) handle.remove();
      entry = watched_.erase(entry);
      continue;
    }
    const bool unnamed = tensor.requires_grad() && (watched.handles.empty() || tensor.grad().defined());
    if (allocation_of(tensor) != watched.allocation || unnamed) name(tensor, watched);
    ++entry;
  }
}

void WatchedTensors::name_state(const at::Tensor& parameter, const at::Tensor& state) {
  std::lock_guard lock(mutex_);
  const auto entry = watched_.find(parameter.unsafeGetTensorImpl());
  auto owner = managed_ != nullptr && parameter.defined() ? managed_->owner_of(parameter) : std::nullopt;
  if (!owner && entry != watched_.end()) owner = entry->second.owner;
  if (owner) {
    books_->name_tensor(state, state_category_, *owner);
  } else {
    books_->name_tensor(state, state_category_);
  }
}

std::size_t WatchedTensors::size() const {
  std::lock_guard lock(mutex_);
  return watched_.size();
}

}  // namespace plimsoll
