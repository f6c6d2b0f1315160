#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>

namespace plimsoll::nn {

/// Intercepts each operator call of a thread while a DispatchModeScope is open. Counterpart of
/// torch.utils._python_dispatch.TorchDispatchMode.
class DispatchMode {
 public:
  virtual ~DispatchMode() = default;

  /// Does the call: takes the operator's arguments from the stack and leaves its results there. `op.callBoxed(&stack)`
  /// passes it on, to the next outer mode and then to torch. This mode does not see operators that it calls itself.
  virtual void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) = 0;
};

/// The position of a mode between the caller of an operator and its kernel.
enum class ModeLevel : std::uint8_t {
  kAboveAutograd,  ///< Sees calls as they are made; composite operators are one call.
  kBelowAutograd,  ///< Sees calls that reach the backends; composite operators are decomposed, as in TorchDispatchMode.
};

/// Activates a mode for this thread's operator calls. The mode sees a call before the modes of enclosing scopes.
///
/// The first scope of a level in a process registers a fallback with torch's dispatcher, for TESTING_ONLY_GenericMode
/// or for Fake. It throws if another library has registered one.
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

/// Lets the mode also see the calls below autograd on autograd's threads, for a backward that was called inside a
/// DispatchModeScope of the mode: these threads inherit that a mode is active, but not which one. One at a time in a
/// process.
///
/// REQUIRES: the mode outlives the scope, and may be called on any thread.
class BackwardModeScope {
 public:
  explicit BackwardModeScope(DispatchMode& mode);
  ~BackwardModeScope();
  BackwardModeScope(const BackwardModeScope&) = delete;
  BackwardModeScope& operator=(const BackwardModeScope&) = delete;
};

/// Throws if a fallback is registered for the key.
void require_free_key(c10::DispatchKey key);

}  // namespace plimsoll::nn
