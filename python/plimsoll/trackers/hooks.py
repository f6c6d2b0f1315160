"""How Python's modules, optimizers and checkpoints are seen: one set of hooks for all trackers of the process, there while one
of them is entered. What they see goes to the native part, which tells every tracker.

[Note: functions that run again] Activation checkpointing calls the same function in forward, and again in backward. Each is
wrapped where torch keeps it for the second time: what it allocates then is activations, and not temporaries of backward.
"""

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
import torch.utils.checkpoint
from torch.nn.modules.module import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from plimsoll.native import _C


class Defects(Protocol):
    """Who is told what a hook raised, which then raises nothing (plimsoll.run.observe.defects)."""

    def failed(self, part: str, error: BaseException) -> None: ...
    def attempt(self, part: Callable[..., object], *args: Any) -> None: ...


# -- optimizers ----------------------------------------------------------------------------------------------------------


_Open = list[tuple["weakref.ref[Optimizer]", int]]  # and the thread of each


class _Steps:
    """The steps that are under way. One that raised is not over by torch's hooks; it is found to be gone later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.open: _Open = []

    def begin(self, optimizer: Optimizer, *_: Any) -> None:
        self.drop_broken()
        if _lacks_state(optimizer):
            _tell_of_new_state(optimizer)
        self.begin_compiled(optimizer)

    def begin_compiled(self, optimizer: Optimizer) -> None:
        """The compiler knows torch's own methods of an optimizer, and none that stand for them."""
        step = (weakref.ref(optimizer), threading.get_ident())
        self._set_open(lambda steps: [*steps, step])
        _C.step_begins(optimizer)

    def end(self, optimizer: Optimizer, *_: Any) -> None:
        if any(one() is optimizer for one, _ in self.open):
            self._close(optimizer)

    def drop_broken(self) -> None:
        """The forward of a closure runs within a step; any other finds the step gone from this thread's stack."""
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
        """None: one that is gone."""
        self._set_open(lambda steps: [(one, thread) for one, thread in steps if one() not in (optimizer, None)])
        if optimizer is not None and isinstance(optimizer.__dict__.get("_init_group"), _InitGroup):
            del optimizer.__dict__["_init_group"]
        _C.step_over(optimizer)

    def forget(self) -> None:
        """In a forked child, where another thread of the parent's may have held the lock."""
        self._lock = threading.Lock()


_steps = _Steps()


# What torch puts around every optimizer's step.
_AROUND_STEP = {part for part in Optimizer.profile_hook_step.__code__.co_consts if isinstance(part, CodeType)}


def _is_stepping() -> bool:
    """Whether this thread is in a step, of whichever optimizer. By code alone: to read a frame's variables keeps them alive."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _AROUND_STEP:
            return True
        frame = frame.f_back
    return False


def _lacks_state(optimizer: Optimizer) -> bool:
    return len(optimizer.state) < sum(len(group["params"]) for group in optimizer.param_groups)


def _tell_of_new_state(optimizer: Optimizer) -> None:
    """torch's optimizers make a parameter's state in one method of theirs, for this step wrapped."""
    original = getattr(optimizer, "_init_group", None)
    if original is None or "_init_group" in optimizer.__dict__:
        return

    optimizer._init_group = _InitGroup(original)  # type: ignore[attr-defined]


class _InitGroup:
    """Stands for an optimizer's own `_init_group`. What a script has put there itself is left."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _C.StateCreation():
            return self._original(*args, **kwargs)


# -- checkpoints ---------------------------------------------------------------------------------------------------------


def _again(function: Callable[..., Any]) -> Callable[..., Any]:
    def run_again(*args: Any, **kwargs: Any) -> Any:
        with _C.Recomputation():
            return function(*args, **kwargs)

    return run_again


class _Checkpoints:
    """See [Note: functions that run again]."""

    def install(self) -> None:
        checkpoint = torch.utils.checkpoint
        self._frame_init = frame_init = checkpoint._CheckpointFrame.__init__
        self._forward = forward = checkpoint.CheckpointFunction.forward

        def init(frame: Any, recompute_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
            frame_init(frame, _again(recompute_fn), *args, **kwargs)

        def forward_of_reentrant(ctx: Any, run_function: Callable[..., Any], *args: Any) -> Any:
            outputs = forward(ctx, run_function, *args)
            ctx.run_function = _again(ctx.run_function)
            return outputs

        checkpoint._CheckpointFrame.__init__ = init  # type: ignore[method-assign]
        checkpoint.CheckpointFunction.forward = staticmethod(forward_of_reentrant)  # type: ignore[method-assign]

    def remove(self) -> None:
        torch.utils.checkpoint._CheckpointFrame.__init__ = self._frame_init  # type: ignore[method-assign]
        torch.utils.checkpoint.CheckpointFunction.forward = staticmethod(self._forward)  # type: ignore[method-assign]


# -- modules -------------------------------------------------------------------------------------------------------------


class _ModuleCalls:
    """Hooks of all modules, and a short way to them. A module that is hooked at all is called by torch in a way that costs more
    than our hooks do; so one that has no hooks of its own, where there are none but ours, is called between them directly."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._call_impl: Callable[..., Any] | None = None
        _C.set_global_hooks(
            _global_forward_pre_hooks, _global_forward_hooks, _global_backward_pre_hooks, _global_backward_hooks
        )

    def see(self) -> None:
        self._handles = [
            register_module_forward_pre_hook(_C.before_forward),
            register_module_forward_hook(_C.after_forward, with_kwargs=True, always_call=True),
        ]
        original = torch.nn.Module._call_impl

        @functools.wraps(original)
        def call_impl(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            result = _C.call_forward(module, args, kwargs, _NOT_CALLED)
            return original(module, *args, **kwargs) if result is _NOT_CALLED else result

        torch.nn.Module._call_impl = self._call_impl = call_impl  # type: ignore[method-assign]

    def see_no_more(self) -> None:
        for handle in self._handles:
            handle.remove()
            _global_forward_hooks_with_kwargs.pop(handle.id, None)  # torch leaves it there, and takes it for a hook.
        self._handles = []
        ours, self._call_impl = self._call_impl, None
        if ours is None:
            return
        original = ours.__wrapped__  # type: ignore[attr-defined]
        if torch.nn.Module._call_impl is ours:
            torch.nn.Module._call_impl = original  # type: ignore[method-assign]
        # torch.compile keeps the one that it met when it was imported.
        compiler = sys.modules.get("torch._dynamo.utils")
        if getattr(compiler, "unpatched_nn_module_call_impl", None) is ours:
            compiler.unpatched_nn_module_call_impl = original  # type: ignore[union-attr]


_NOT_CALLED = object()


# -- together ------------------------------------------------------------------------------------------------------------


class Hooks:
    """The hooks of the process. `acquire` and `release` come in pairs; so do `suspend` and `resume`, between which nothing is
    seen of modules."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._defects: Defects | None = None
        self._users = 0
        self._suspended = 0
        self._modules = _ModuleCalls()
        self._handles: list[Any] = []
        self._checkpoints = _Checkpoints()

    def guard_with(self, defects: Defects | None) -> None:
        """What a hook raises does not reach the script from now on."""
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
            self._checkpoints.install()
            if not self._suspended:
                self._modules.see()

    def compiled_step_begins(self, optimizer: Optimizer) -> None:
        """No hook is called in compiled code: whoever knows what it does tells of a step."""
        _steps.begin_compiled(optimizer)

    def compiled_step_ends(self, optimizer: Optimizer) -> None:
        """Where it was told late, of code that does more than the step, this is all of it: its state is known now."""
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
                self._modules.see_no_more()

    def resume(self) -> None:
        with self._lock:
            self._suspended -= 1
            if self._suspended == 0 and self._users > 0:
                self._modules.see()

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            self._modules.see_no_more()
            for handle in self._handles:
                handle.remove()
            self._handles = []
            self._checkpoints.remove()
        _steps.clear()

    def forget(self) -> None:
        """In a forked child, where the trackers of its parent see nothing. Another thread of the parent's may have held a lock."""
        self._lock = threading.RLock()
        _steps.forget()
        if self._users:
            self._users = 1
            self.release()


hooks = Hooks()


def see_cuda_when_it_is_there() -> None:
    """A process that has not initialised CUDA is left so: it may still fork."""
    if torch.version.cuda is not None and not torch.cuda.is_initialized():
        torch.cuda._lazy_call(_C.start_late_sources)


_C.wait_for_cuda()
