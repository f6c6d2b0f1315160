#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/nn/module.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "plimsoll/nn/hooks/hook_list.h"

/// Forward hooks for modules of libtorch's C++ front end, like those of torch.nn.Module in Python.
///
/// A module gets hooks by its declaration (hooked.h):
///
///     TORCH_MODULE_IMPL(Block, plimsoll::nn::Hooked<BlockImpl>);
///
/// A call of a hooked module runs, in this order: global forward pre-hooks, the module's forward pre-hooks, `forward`,
/// global forward hooks, the module's forward hooks.
///
/// Hooks run on the thread that calls the module. Different threads may call hooked modules at once. Hooks of a module
/// may be added and removed from within its hooks, or by a thread while no call of the module is running. Global hooks
/// may be added and removed by any thread at any time.
namespace plimsoll::nn {

/// The defined tensors in the arguments or the result of a call, in order, also inside optionals, tuples, vectors or
/// maps. An assignment to one replaces it for the module, the later hooks and the caller.
class Tensors {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = at::Tensor;
    using reference = at::Tensor&;
    using pointer = at::Tensor*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    explicit Iterator(at::Tensor* const* at) : at_(at) {}
    at::Tensor& operator*() const { return **at_; }
    at::Tensor* operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    at::Tensor* const* at_ = nullptr;
  };

  /// Ignores undefined tensors: they represent Python's None.
  void add(at::Tensor& tensor) {
    if (tensor.defined()) tensors_.push_back(&tensor);
  }

  Iterator begin() const { return Iterator(tensors_.begin()); }
  Iterator end() const { return Iterator(tensors_.end()); }
  std::size_t size() const { return tensors_.size(); }
  bool empty() const { return tensors_.empty(); }
  at::Tensor& operator[](std::size_t index) const { return *tensors_[index]; }

 private:
  c10::SmallVector<at::Tensor*, 4> tensors_;
};

using ForwardPreHook = std::function<void(torch::nn::Module&, Tensors& arguments)>;
using ForwardHook = std::function<void(torch::nn::Module&, Tensors& arguments, Tensors& results)>;

struct ForwardPreHookOptions {
  bool prepend = false;  ///< Before the existing hooks, instead of after them.
};

struct ForwardHookOptions {
  bool prepend = false;
  /// Runs also if a pre-hook, `forward` or a hook throws; the hook then gets the results so far. The exception goes on
  /// to the caller; an exception of the hook itself becomes a warning.
  bool always_call = false;
};

struct GlobalForwardHookOptions {
  bool always_call = false;  ///< As in ForwardHookOptions.
};

/// The base of every hooked module: `dynamic_cast<Hookable*>(&module)` is null for a module without hooks.
class Hookable {
 public:
  Hookable() = default;
  /// A copy has the hooks of the original; handles of the original do not affect the copy's.
  Hookable(const Hookable& other);
  Hookable& operator=(const Hookable& other);
  virtual ~Hookable();

  /// Runs before each `forward` of this module. If it throws, `forward` is not called.
  HookHandle register_forward_pre_hook(ForwardPreHook hook, ForwardPreHookOptions options = {});

  /// Runs after each `forward` of this module.
  HookHandle register_forward_hook(ForwardHook hook, ForwardHookOptions options = {});

  /// Attaches an object of another layer to the module, one for each type. A copy of the module does not have it.
  template <class T>
  void attach(std::shared_ptr<T> value) {
    for (auto& [type, kept] : attachments_) {
      if (type == typeid(T)) {
        kept = std::move(value);
        return;
      }
    }
    attachments_.emplace_back(typeid(T), std::move(value));
  }

  /// The attached object of that type; null if absent.
  template <class T>
  std::shared_ptr<T> attachment() const {
    for (const auto& [type, kept] : attachments_) {
      if (type == typeid(T)) return std::static_pointer_cast<T>(kept);
    }
    return nullptr;
  }

 private:
  friend class HookedCall;
  struct Lists {
    std::shared_ptr<HookList<ForwardPreHook>> before = std::make_shared<HookList<ForwardPreHook>>();
    std::shared_ptr<HookList<ForwardHook>> after = std::make_shared<HookList<ForwardHook>>();
  };
  Lists& lists();
  bool has_own() const noexcept { return lists_ && !(lists_->before->empty() && lists_->after->empty()); }

  std::unique_ptr<Lists> lists_;
  std::vector<std::pair<std::type_index, std::shared_ptr<void>>> attachments_;
};

/// Runs before the `forward` of every hooked module of the process.
HookHandle register_global_forward_pre_hook(ForwardPreHook hook);

/// Runs after the `forward` of every hooked module of the process.
HookHandle register_global_forward_hook(ForwardHook hook, GlobalForwardHookOptions options = {});

/// The module's class name in its source: without namespaces, `Hooked<…>` and a trailing `Impl`.
std::string class_name(const torch::nn::Module& module);

/// The module's hooks. If it has none, throws with the module's class, its path (if given) and how to declare hooks.
Hookable& require_hooks(torch::nn::Module& module, std::string_view path = {});
const Hookable& require_hooks(const torch::nn::Module& module, std::string_view path = {});

/// The number of global hooks; a hooked call reads it first.
inline std::atomic<std::size_t> global_hook_count{0};

/// The hooks of one call of a hooked module; only for Hooked.
class HookedCall {
 public:
  /// Whether a call of the module would run any hook.
  static bool needed(const Hookable& hooks) noexcept {
    return global_hook_count.load(std::memory_order_relaxed) != 0 || hooks.has_own();
  }

  /// REQUIRES: all outlive this object.
  HookedCall(torch::nn::Module& module, const Hookable& hooks, Tensors& arguments);

  void before();
  void after(Tensors& results);

  /// Runs the always-call hooks that have not run. Called with an exception in flight, which stays the one thrown.
  void failed(Tensors& results) noexcept;

 private:
  using ForwardHooks = HookList<ForwardHook>::Snapshot;
  void fetch();
  void run(const ForwardHooks& hooks, std::size_t& done, Tensors& results);
  void run_always_called(const ForwardHooks& hooks, std::size_t done, Tensors& results) noexcept;

  torch::nn::Module& module_;
  const Hookable& hooks_;
  Tensors& arguments_;
  ForwardHooks global_;
  ForwardHooks own_;
  std::size_t global_done_ = 0;
  std::size_t own_done_ = 0;
  bool fetched_ = false;
};

}  // namespace plimsoll::nn
