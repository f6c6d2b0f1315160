"""Observes Python's modules, optimizers and checkpoints: one set of hooks for all trackers of the process, installed while a
tracker is entered. The hooks call the native part, which informs every tracker.

[Note: recomputation] Activation checkpointing calls the same function in forward and again in backward. The function that torch
keeps for backward is wrapped, because its allocations are activations, not temporaries of backward.
"""

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
import torch.utils.checkpoint
from torch.nn.modules import module as modules
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from plimsoll.native import _C
from plimsoll.wrapping import around


class Defects(Protocol):
    """Collects the exceptions of hooks (plimsoll.run.observe.defects)."""

    def failed(self, part: str, error: BaseException) -> None: ...
    def attempt(self, part: Callable[..., object], *args: Any) -> None: ...


_Open = list[tuple["weakref.ref[Optimizer]", int]]  # with the thread of each step


class _Steps:
    """The optimizer steps that are running. torch calls no hook for a step that raised: `drop_broken` finds it later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.open: _Open = []

    def begin(self, optimizer: Optimizer, *_: Any) -> None:
        self.drop_broken()
        if _lacks_state(optimizer):
            _observe_new_state(optimizer)
        self.begin_compiled(optimizer)

    def begin_compiled(self, optimizer: Optimizer) -> None:
        """Does not wrap `_init_group`: the compiler knows only torch's own methods of an optimizer."""
        step = (weakref.ref(optimizer), threading.get_ident())
        self._set_open(lambda steps: [*steps, step])
        _C.step_begins(optimizer)

    def end(self, optimizer: Optimizer, *_: Any) -> None:
        if any(one() is optimizer for one, _ in self.open):
            self._close(optimizer)

    def drop_broken(self) -> None:
        """Closes steps that are no longer on this thread's stack. The forward of a closure runs within a step."""
        if _is_stepping():
            return
        for optimizer, thread in list(self.open):
            if thread == threading.get_ident():
                self._close(optimizer())

    def clear(self) -> None:
        for optimizer, _ in list(self.open):
            self._close(optimizer())

    def _set_open(self, change: Callable[[_Open], _Open]) -> None:
        with self._lock:
            self.open = change(self.open)
            _C.set_before_any_forward(self.drop_broken if self.open else None)

    def _close(self, optimizer: Optimizer | None) -> None:
        """None: an optimizer that was freed."""
        self._set_open(lambda steps: [(one, thread) for one, thread in steps if one() not in (optimizer, None)])
        if optimizer is not None and isinstance(optimizer.__dict__.get("_init_group"), _InitGroup):
            del optimizer.__dict__["_init_group"]
        _C.step_over(optimizer)

    def forget(self) -> None:
        """In a forked child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


_steps = _Steps()


# The code that torch puts around every optimizer step.
_AROUND_STEP = {part for part in Optimizer.profile_hook_step.__code__.co_consts if isinstance(part, CodeType)}


def _is_stepping() -> bool:
    """True if this thread is in any optimizer step. Compares only code: reading a frame's variables would keep them alive."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _AROUND_STEP:
            return True
        frame = frame.f_back
    return False


def _lacks_state(optimizer: Optimizer) -> bool:
    return len(optimizer.state) < sum(len(group["params"]) for group in optimizer.param_groups)


def _observe_new_state(optimizer: Optimizer) -> None:
    """Wraps, for this step, the method in which torch's optimizers create state."""
    original = getattr(optimizer, "_init_group", None)
    if original is None or "_init_group" in optimizer.__dict__:
        return

    optimizer._init_group = _InitGroup(original)


class _InitGroup:
    """Replaces an optimizer's `_init_group`. A replacement by the script stays."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _C.StateCreation():
            return self._original(*args, **kwargs)


def _as_recomputation(function: Callable[..., Any]) -> Callable[..., Any]:
    def recompute(*args: Any, **kwargs: Any) -> Any:
        with _C.Recomputation():
            return function(*args, **kwargs)

    return recompute


def _observe_checkpoints(undo: ExitStack) -> None:
    """See [Note: recomputation]."""

    @around(torch.utils.checkpoint._CheckpointFrame, "__init__", undo)
    def init(frame_init: Any, frame: Any, recompute_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        frame_init(frame, _as_recomputation(recompute_fn), *args, **kwargs)

    @around(torch.utils.checkpoint.CheckpointFunction, "forward", undo)
    def forward_of_reentrant(forward: Any, ctx: Any, run_function: Callable[..., Any], *args: Any) -> Any:
        outputs = forward(ctx, run_function, *args)
        ctx.run_function = _as_recomputation(ctx.run_function)
        return outputs


class _ModuleCalls:
    """Global module hooks with a fast path. With any hook, torch's way to call a module costs more than our hooks do. So if a module
    has no hooks and the only global hooks are ours, the native part calls its forward between our hooks directly."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._call_impl: Callable[..., Any] | None = None
        _C.set_global_hooks(
            modules._global_forward_pre_hooks,
            modules._global_forward_hooks,
            modules._global_backward_pre_hooks,
            modules._global_backward_hooks,
        )

    def install(self) -> None:
        self._handles = [
            modules.register_module_forward_pre_hook(_C.before_forward),
            modules.register_module_forward_hook(_C.after_forward, with_kwargs=True, always_call=True),
        ]
        original = torch.nn.Module._call_impl

        @functools.wraps(original)
        def call_impl(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            result = _C.call_forward(module, args, kwargs, _NOT_CALLED)
            return original(module, *args, **kwargs) if result is _NOT_CALLED else result

        torch.nn.Module._call_impl = self._call_impl = call_impl

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
            # torch forgets to remove it and would take it for a hook.
            modules._global_forward_hooks_with_kwargs.pop(handle.id, None)
        self._handles = []
        ours, self._call_impl = self._call_impl, None
        if ours is None:
            return
        original = ours.__wrapped__  # type: ignore[attr-defined]
        if torch.nn.Module._call_impl is ours:
            torch.nn.Module._call_impl = original
        # torch.compile keeps the function that it found at its import.
        compiler = sys.modules.get("torch._dynamo.utils")
        if getattr(compiler, "unpatched_nn_module_call_impl", None) is ours:
            compiler.unpatched_nn_module_call_impl = original  # type: ignore[union-attr]


_NOT_CALLED = object()


class Hooks:
    """The hooks of the process. `acquire` and `release` come in pairs, and so do `suspend` and `resume`. While suspended, modules
    are not observed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._defects: Defects | None = None
        self._users = 0
        self._suspended = 0
        self._modules = _ModuleCalls()
        self._handles: list[Any] = []
        self._checkpoints = ExitStack()

    def guard_with(self, defects: Defects | None) -> None:
        """From now on, exceptions of hooks do not reach the script."""
        self._defects = defects
        _C.set_on_defect(defects.failed if defects is not None else None)

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            self._handles = [
                register_optimizer_step_pre_hook(functools.partial(self._guarded, _steps.begin)),
                register_optimizer_step_post_hook(functools.partial(self._guarded, _steps.end)),
            ]
            _observe_checkpoints(self._checkpoints)
            if not self._suspended:
                self._modules.install()

    def compiled_step_begins(self, optimizer: Optimizer) -> None:
        """For a step in compiled code, which does not call hooks."""
        _steps.begin_compiled(optimizer)

    def compiled_step_ends(self, optimizer: Optimizer) -> None:
        """If the compiled step was recognized only now, this records the whole step: its state is known."""
        if all(one() is not optimizer for one, _ in _steps.open):
            _steps.begin_compiled(optimizer)
        _steps.end(optimizer)

    def _guarded(self, hook: Callable[..., None], *args: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self._defects is None:
            hook(*args)
        else:
            self._defects.attempt(hook, *args)

    def suspend(self) -> None:
        with self._lock:
            self._suspended += 1
            if self._suspended == 1:
                self._modules.remove()

    def resume(self) -> None:
        with self._lock:
            self._suspended -= 1
            if self._suspended == 0 and self._users > 0:
                self._modules.install()

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            self._modules.remove()
            for handle in self._handles:
                handle.remove()
            self._handles = []
            self._checkpoints.close()
        _steps.clear()

    def forget(self) -> None:
        """In a forked child: the parent's trackers do not observe it, and another thread of the parent may have held a lock."""
        self._lock = threading.RLock()
        _steps.forget()
        if self._users:
            self._users = 1
            self.release()


hooks = Hooks()


def see_cuda_when_initialized() -> None:
    """Does not initialize CUDA, because the process may still fork."""
    if torch.version.cuda is not None and not torch.cuda.is_initialized():
        torch.cuda._lazy_call(_C.start_late_sources)


_C.wait_for_cuda()
