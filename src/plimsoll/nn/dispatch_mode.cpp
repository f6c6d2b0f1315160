#include "plimsoll/nn/dispatch_mode.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <vector>

namespace plimsoll::nn {
namespace {

// The Fake key is below autograd and above the backends. In torch 2.13 only C++ fake tensors have it, and libtorch
// registers nothing for it.
constexpr c10::DispatchKey key_of(ModeLevel level) {
  return level == ModeLevel::kAboveAutograd ? c10::DispatchKey::TESTING_ONLY_GenericMode : c10::DispatchKey::Fake;
}

using Modes = std::vector<DispatchMode*>;

Modes& modes_of(ModeLevel level) {
  static thread_local Modes above;
  static thread_local Modes below;
  return level == ModeLevel::kAboveAutograd ? above : below;
}

std::atomic<DispatchMode*> mode_of_backward = nullptr;

// Removes the innermost mode while it handles a call.
template <ModeLevel level>
class TakenMode {
 public:
  TakenMode() : mode_(modes_of(level).back()) {
    modes_of(level).pop_back();
    if (modes_of(level).empty()) c10::impl::tls_set_dispatch_key_included(key_of(level), false);
  }
  ~TakenMode() {
    modes_of(level).push_back(mode_);
    c10::impl::tls_set_dispatch_key_included(key_of(level), true);
  }
  DispatchMode& operator*() const { return *mode_; }

 private:
  DispatchMode* mode_;
};

template <ModeLevel level>
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (modes_of(level).empty()) {
    // Autograd's threads inherit the included keys of the thread that called backward, but not its modes.
    const c10::impl::ExcludeDispatchKeyGuard guard(key_of(level));
    DispatchMode* const mode = mode_of_backward.load(std::memory_order_acquire);
    if (level == ModeLevel::kBelowAutograd && mode != nullptr) {
      mode->call(op, *stack);
    } else {
      op.callBoxed(stack);
    }
    return;
  }
  const TakenMode<level> mode;
  (*mode).call(op, *stack);
}

template <ModeLevel level>
void register_fallback() {
  static const bool registered = [] {
    constexpr c10::DispatchKey key = key_of(level);
    require_free_key(key);
    // Never destroyed: autograd threads may use it late.
    auto* const library = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback<level>>());
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace

void require_free_key(c10::DispatchKey key) {
  TORCH_CHECK(!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key), "Expected the dispatch key ",
              c10::toString(key),
              " to be free for dispatch modes, but another library of this process registered a fallback for it. "
              "Load only one of the two.");
}

BackwardModeScope::BackwardModeScope(DispatchMode& mode) { mode_of_backward.store(&mode, std::memory_order_release); }

BackwardModeScope::~BackwardModeScope() { mode_of_backward.store(nullptr, std::memory_order_release); }

DispatchModeScope::DispatchModeScope(ModeLevel level, DispatchMode& mode) : level_(level) {
  if (level == ModeLevel::kAboveAutograd) {
    register_fallback<ModeLevel::kAboveAutograd>();
  } else {
    register_fallback<ModeLevel::kBelowAutograd>();
  }
  modes_of(level).push_back(&mode);
  c10::impl::tls_set_dispatch_key_included(key_of(level), true);
}

DispatchModeScope::~DispatchModeScope() {
  modes_of(level_).pop_back();
  if (modes_of(level_).empty()) c10::impl::tls_set_dispatch_key_included(key_of(level_), false);
}

}  // namespace plimsoll::nn
