#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>

namespace plimsoll::nn {

/// Something that every operator call of a thread passes through while a DispatchModeScope of it is open: C++'s
/// counterpart of torch.utils._python_dispatch.TorchDispatchMode.
class DispatchMode {
 public:
  virtual ~DispatchMode() = default;

  /// Does the call: takes the operator's arguments from the stack and leaves its results there. `op.callBoxed(&stack)`
  /// passes it on, to the next mode outwards and then to torch; operators called meanwhile are not seen by this mode.
  virtual void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) = 0;
};

/// Where a mode stands between the caller of an operator and its kernel.
enum class ModeLevel : std::uint8_t {
  kAboveAutograd,  ///< Sees calls as they are made, composite operators whole.
  kBelowAutograd,  ///< Sees what reaches the backends, composite operators taken apart; as TorchDispatchMode does.
};

/// While it lives, the mode sees the operator calls of this thread, before the modes of enclosing scopes do.
///
/// The first scope of a level in a process registers a fallback with torch's dispatcher, for TESTING_ONLY_GenericMode
/// and for Fake; it throws where another library has done so already.
///
/// REQUIRES: scopes of a thread end in the reverse order of their beginning. The mode outlives the scope.
class DispatchModeScope {
 public:
  DispatchModeScope(ModeLevel level, DispatchMode& mode);
  ~DispatchModeScope();
  DispatchModeScope(const DispatchModeScope&) = delete;
  DispatchModeScope& operator=(const DispatchModeScope&) = delete;

 private:
  ModeLevel level_;
};

/// While it lives, the mode also sees what autograd's threads do below autograd for a backward that was called within a
/// DispatchModeScope of it: they inherit that a mode is at work, but not which. One at a time in a process.
///
/// REQUIRES: the mode outlives the scope, and may be called on any thread.
class BackwardModeScope {
 public:
  explicit BackwardModeScope(DispatchMode& mode);
  ~BackwardModeScope();
  BackwardModeScope(const BackwardModeScope&) = delete;
  BackwardModeScope& operator=(const BackwardModeScope&) = delete;
};

/// Throws where a fallback is registered for the key.
void require_free_key(c10::DispatchKey key);

}  // namespace plimsoll::nn
