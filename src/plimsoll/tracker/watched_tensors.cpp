#include "plimsoll/tracker/watched_tensors.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/holders.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/nn/module_contents.h"

namespace plimsoll::inline tracker {

namespace categories = ledger::categories;

namespace {

/// The first tensor, if a wrapper has several.
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
  tracked_->set_state_category(state);
  std::lock_guard lock(mutex_);
  managed_ = managed;
  state_category_ = state;
}

void WatchedTensors::add(torch::nn::Module& module, const std::string& fqn) {
  add_own(module, fqn);
  for (const auto& [name, child] : nn::children_of(module)) add(*child, fqn + "." + name);
}

// [Note: work without the lock] To look into a tensor, or to put a hook on it, may run code of another front end. That
// code may wait for a thread that waits for our lock. So the lock guards only the table.

void WatchedTensors::add_own(torch::nn::Module& module, const std::string& fqn) {
  const auto owner = tracked_->owner(fqn);
  for (const auto& parameter : nn::parameters_of(module)) watch(parameter, categories::kParameter, module, owner);
  for (const auto& buffer : nn::buffers_of(module)) watch(buffer, categories::kBuffer, module, owner);
}

void WatchedTensors::watch(const at::Tensor& tensor, ledger::CategoryId category, const torch::nn::Module& module,
                           ledger::OwnerId owner) {
  Seen seen;
  {
    std::lock_guard lock(mutex_);
    if (category == categories::kParameter && managed_ != nullptr && managed_->owner_of(tensor)) return;
    const auto [entry, is_new] = watched_.try_emplace(
        tensor.unsafeGetTensorImpl(), Watched{WeakTensor(tensor.getIntrusivePtr()), &module, category, owner});
    auto& watched = entry->second;
    watched.thread = std::this_thread::get_id();
    if (!is_new && watched.module == &module) watched.owner = owner;  // The module may have got another path.
    seen = {tensor, watched.category, watched.owner, watched.allocation, !watched.handles.empty()};
  }
  name(seen);
}

void WatchedTensors::name(const Seen& seen) {
  const auto& tensor = seen.tensor;
  tracked_->name_tensor(tensor, seen.category, seen.owner);
  const auto allocation = allocation_of(tensor);
  std::vector<nn::HookHandle> handles;
  if (seen.category == categories::kParameter && tensor.is_leaf()) {  // FSDP1 puts views in the place of parameters.
    if (tensor.grad().defined()) tracked_->name_tensor(tensor.grad(), categories::kGradient, seen.owner);
    if (tensor.requires_grad() && !seen.hooked) handles = hook_gradients(tensor);
  }
  std::lock_guard lock(mutex_);
  const auto entry = watched_.find(tensor.unsafeGetTensorImpl());
  if (entry == watched_.end()) return;
  entry->second.allocation = allocation;
  if (entry->second.handles.empty()) entry->second.handles = std::move(handles);
}

/// The gradient at its computation, and the parameter's: the accumulated one may be another tensor.
std::vector<nn::HookHandle> WatchedTensors::hook_gradients(const at::Tensor& parameter) {
  // A weak pointer, because a hook on a tensor may outlive the tracker.
  const auto name = [self = weak_from_this(), key = parameter.unsafeGetTensorImpl()](const at::Tensor& gradient) {
    if (const auto alive = self.lock()) alive->name_gradient(key, gradient);
  };
  return {nn::register_tensor_hook(parameter,
                                   [name](const at::Tensor& gradient) {
                                     name(gradient);
                                     return at::Tensor();
                                   }),
          nn::register_post_accumulate_grad_hook(parameter, [name](const at::Tensor& tensor) { name(tensor.grad()); })};
}

void WatchedTensors::name_gradient(c10::TensorImpl* parameter, const at::Tensor& gradient) {
  if (!tracked_->tracking() || !gradient.defined()) return;
  std::optional<ledger::OwnerId> owner;
  {
    std::lock_guard lock(mutex_);
    const auto entry = watched_.find(parameter);
    if (entry != watched_.end()) owner = entry->second.owner;
  }
  if (owner) tracked_->name_tensor(gradient, categories::kGradient, *owner);
}

void WatchedTensors::look_again() {
  std::vector<Seen> all;
  std::vector<nn::HookHandle> to_remove;
  {
    std::lock_guard lock(mutex_);
    for (auto entry = watched_.begin(); entry != watched_.end();) {
      auto& watched = entry->second;
      const auto alive = watched.tensor.lock();
      const at::Tensor tensor = alive ? at::Tensor(alive) : at::Tensor();
      const bool is_managed = tensor.defined() && managed_ != nullptr && managed_->owner_of(tensor);  // By now.
      if (tensor.defined() && !is_managed) {
        if (watched.thread == std::this_thread::get_id()) {
          all.push_back({tensor, watched.category, watched.owner, watched.allocation, !watched.handles.empty()});
        }
        ++entry;
        continue;
      }
      if (is_managed) to_remove.insert(to_remove.end(), watched.handles.begin(), watched.handles.end());
      entry = watched_.erase(entry);
    }
    for (auto entry = named_states_.begin(); entry != named_states_.end();) {
      entry = entry->second.tensor.expired() ? named_states_.erase(entry) : std::next(entry);
    }
  }
  for (auto& handle : to_remove) handle.remove();
  for (const auto& seen : all) {
    const bool unnamed =
        seen.tensor.requires_grad() && seen.tensor.is_leaf() && (!seen.hooked || seen.tensor.grad().defined());
    if (allocation_of(seen.tensor) != seen.allocation || unnamed) name(seen);
  }
}

void WatchedTensors::name_state(const at::Tensor& parameter, const at::Tensor& state) {
  std::optional<ledger::OwnerId> owner;
  ledger::CategoryId category{};
  std::optional<NamedState> known;
  {
    std::lock_guard lock(mutex_);
    category = state_category_;
    if (managed_ != nullptr && parameter.defined()) owner = managed_->owner_of(parameter);
    const auto entry = watched_.find(parameter.unsafeGetTensorImpl());
    if (!owner && entry != watched_.end()) owner = entry->second.owner;
    const auto named = named_states_.find(state.unsafeGetTensorImpl());
    if (named != named_states_.end()) known = named->second;
  }
  if (known && has_name(*known, category, owner)) return;
  tracked_->name_tensor(state, category, owner);
  NamedState named{WeakTensor(state.getIntrusivePtr()), {}};
  capture::for_each_holder(state, [&](const at::Tensor& holder) {
    const auto found = capture::find(holder);
    named.holders.push_back({WeakTensor(holder.getIntrusivePtr()), found ? ledger::value(found->id) : 0});
  });
  std::lock_guard lock(mutex_);
  named_states_.insert_or_assign(state.unsafeGetTensorImpl(), std::move(named));
}

/// Whether the tensor is still this state, in the memory that was named.
bool WatchedTensors::has_name(const NamedState& known, ledger::CategoryId category,
                              std::optional<ledger::OwnerId> owner) const {
  if (known.tensor.expired()) return false;  // Another tensor has its address.
  return std::all_of(known.holders.begin(), known.holders.end(), [&](const auto& holder) {
    const auto alive = holder.tensor.lock();
    const auto found = alive ? capture::find(at::Tensor(alive)) : std::nullopt;
    return found && ledger::value(found->id) == holder.allocation && tracked_->is_named(found->id, category, owner);
  });
}

std::size_t WatchedTensors::size() const {
  std::lock_guard lock(mutex_);
  return watched_.size();
}

}  // namespace plimsoll::inline tracker
