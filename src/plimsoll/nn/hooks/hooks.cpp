#include "plimsoll/nn/hooks/hooks.h"

#include <c10/util/Exception.h>

#include <exception>

namespace plimsoll::nn {
namespace {

HookList<ForwardPreHook>& global_before() {
  // Never destroyed: modules with static storage may be called late.
  static const auto* const hooks = new std::shared_ptr(std::make_shared<HookList<ForwardPreHook>>(global_hook_count));
  return **hooks;
}

HookList<ForwardHook>& global_after() {
  static const auto* const hooks = new std::shared_ptr(std::make_shared<HookList<ForwardHook>>(global_hook_count));
  return **hooks;
}

}  // namespace

Hookable::Hookable(const Hookable& other) { *this = other; }

Hookable& Hookable::operator=(const Hookable& other) {
  if (this == &other) return *this;
  lists_.reset();
  if (other.has_own()) {
    lists().before->append(*other.lists_->before);
    lists().after->append(*other.lists_->after);
  }
  return *this;
}

Hookable::~Hookable() = default;

Hookable::Lists& Hookable::lists() {
  if (!lists_) lists_ = std::make_unique<Lists>();
  return *lists_;
}

HookHandle Hookable::register_forward_pre_hook(ForwardPreHook hook, ForwardPreHookOptions options) {
  return lists().before->add(std::move(hook), options.prepend, /*always_call=*/false);
}

HookHandle Hookable::register_forward_hook(ForwardHook hook, ForwardHookOptions options) {
  return lists().after->add(std::move(hook), options.prepend, options.always_call);
}

HookHandle register_global_forward_pre_hook(ForwardPreHook hook) {
  return global_before().add(std::move(hook), /*prepend=*/false, /*always_call=*/false);
}

HookHandle register_global_forward_hook(ForwardHook hook, GlobalForwardHookOptions options) {
  return global_after().add(std::move(hook), /*prepend=*/false, options.always_call);
}

HookedCall::HookedCall(torch::nn::Module& module, const Hookable& hooks, Tensors& arguments)
    : module_(module), hooks_(hooks), arguments_(arguments) {}

void HookedCall::before() {
  // Takes both snapshots before either list runs, as in Python.
  const auto global = global_before().snapshot();
  const auto own = hooks_.lists_ ? hooks_.lists_->before->snapshot() : nullptr;
  for (const auto& hooks : {global, own}) {
    if (!hooks) continue;
    for (const auto& hook : *hooks) hook.function(module_, arguments_);
  }
}

void HookedCall::fetch() {
  if (fetched_) return;
  fetched_ = true;
  global_ = global_after().snapshot();
  if (hooks_.lists_) own_ = hooks_.lists_->after->snapshot();
}

void HookedCall::after(Tensors& results) {
  try {
    fetch();
    run(global_, global_done_, results);
    run(own_, own_done_, results);
  } catch (...) {
    failed(results);
    throw;
  }
}

void HookedCall::failed(Tensors& results) noexcept {
  fetch();
  run_always_called(global_, global_done_, results);
  run_always_called(own_, own_done_, results);
}

void HookedCall::run(const ForwardHooks& hooks, std::size_t& done, Tensors& results) {
  if (!hooks) return;
  while (done < hooks->size()) {
    const auto& hook = (*hooks)[done++];  // Counted first: a hook that throws is not called again.
    hook.function(module_, arguments_, results);
  }
}

void HookedCall::run_always_called(const ForwardHooks& hooks, std::size_t done, Tensors& results) noexcept {
  if (!hooks) return;
  for (; done < hooks->size(); ++done) {
    const auto& hook = (*hooks)[done];
    if (!hook.always_call) continue;
    try {
      hook.function(module_, arguments_, results);
    } catch (const std::exception& error) {
      TORCH_WARN("An always-call forward hook of ", class_name(module_),
                 " threw during another exception; its own exception is dropped: ", error.what());
    } catch (...) {
      TORCH_WARN("An always-call forward hook of ", class_name(module_),
                 " threw during another exception; its own exception is dropped");
    }
  }
}

Hookable& require_hooks(torch::nn::Module& module, std::string_view path) {
  return const_cast<Hookable&>(require_hooks(std::as_const(module), path));
}

const Hookable& require_hooks(const torch::nn::Module& module, std::string_view path) {
  const auto* hooks = dynamic_cast<const Hookable*>(&module);
  const std::string name = class_name(module);
  TORCH_CHECK(hooks != nullptr, "Expected a module with forward hooks, found ", name,
              path.empty() ? "" : " at '" + std::string(path) + "'",
              ", which has no hooks. Declare it with hooks: ", "TORCH_MODULE_IMPL(", name, ", plimsoll::nn::Hooked<",
              name, "Impl>)");
  return *hooks;
}

}  // namespace plimsoll::nn
