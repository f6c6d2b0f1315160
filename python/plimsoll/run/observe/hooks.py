"""Reports events of eager mode to the timeline: module calls, backward passes, optimizer steps.

[Note: the forward hook comes and goes] A global module hook slows down every module call, and torch.compile treats modules
differently while one exists. So the hook is armed only when a forward pass may begin. The first module call with gradients removes it,
and compiled code (see `compiled`) removes it before torch looks at any module. A forward without gradients (validation, generation)
does not begin a step or a phase; after compiled code without gradients the hook is armed again.
"""

import functools
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from plimsoll.run.contents.lines import Line, user_line
from plimsoll.run.observe.defects import Defects
from plimsoll.run.observe.phases import Timeline
from plimsoll.run.torch_patches.after_import import after_import


def _is_being_compiled() -> bool:
    """True while torch.compile traces a backward through autograd: nothing runs yet."""
    guards = sys.modules.get("torch._guards")
    return guards is not None and guards.TracingContext.try_get() is not None


class Hooks:
    def __init__(self, torch: Any, timeline: Timeline, defects: Defects, is_on: Callable[[], bool]) -> None:
        self._torch = torch
        self._timeline = timeline
        self._attempt = defects.attempt
        self._defects = defects
        self._is_on = is_on
        self._handle: Any | None = None
        self._waiting = False  # removed for a compiled forward without gradients
        self.backward_line: Line | None = None  # the last call of an outermost backward
        self.on_optimizer: Callable[[], None] = lambda: None
        self.on_backward: Callable[[int, Line | None], None] = lambda time_us, line: None

    def install(self) -> None:
        self._wrap_backward()
        after_import.call("torch.utils.checkpoint", self._wrap_checkpoint)
        from torch.optim import optimizer

        optimizer.register_optimizer_step_pre_hook(self._before_optimizer)
        optimizer.register_optimizer_step_post_hook(self._after_optimizer)
        self.arm()

    def restart(self) -> None:
        self.backward_line = None
        self._waiting = False
        self.arm()

    def arm(self) -> None:
        self._waiting = False
        if self._handle is None and self._is_on():
            self._handle = self._torch.nn.modules.module.register_module_forward_pre_hook(self._module_called)

    def disarm(self) -> bool:
        """True if the hook was armed."""
        handle, self._handle = self._handle, None
        if handle is None:
            return False
        handle.remove()
        return True

    def forward_begins(self) -> None:
        """A module is called or compiled code is entered. Has an effect only if the hook was armed."""
        if self.disarm() and self._is_on():
            if not self._torch.is_grad_enabled():
                self._waiting = True
                return
            try:
                self._attempt(self._timeline.forward_begins)
            except SystemExit:
                self.arm()  # If the script catches it, the next forward raises it again.
                raise

    def device_begins(self) -> None:
        """Discards a forward that ran before CUDA initialization, unless that forward initializes CUDA."""
        if not self._module_runs():
            self._timeline.nothing_ran_yet()
            self.arm()

    def _module_runs(self) -> bool:
        call = self._torch.nn.Module._wrapped_call_impl.__code__
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not call:
            frame = frame.f_back
        return frame is not None

    def compiled_code_left(self) -> None:
        if self._waiting:
            self.arm()

    def _module_called(self, module: Any, args: Any) -> None:
        if self._torch.compiler.is_compiling() or self._torch.jit.is_scripting() or not self._torch.is_grad_enabled():
            return
        self.forward_begins()

    def _wrap_checkpoint(self, module: Any) -> None:
        """Reentrant checkpointing calls its modules without gradients inside a forward with gradients."""
        function = getattr(module, "CheckpointFunction", None)
        if function is None:
            return

        def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._torch.compiler.is_compiling():
                self.forward_begins()
            inherited: Any = super(function, kind)
            return inherited.apply(*args, **kwargs)

        function.apply = classmethod(apply)

    def _wrap_backward(self) -> None:
        """Wraps the only function that enters autograd's engine, in each namespace that imported it."""
        graph, autograd = self._torch.autograd.graph, self._torch.autograd
        original = graph._engine_run_backward

        @functools.wraps(original)
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if not self._is_on() or _is_being_compiled():
                return original(*args, **kwargs)
            self._attempt(self._backward_begins, sys._getframe(1))
            try:
                return original(*args, **kwargs)
            finally:
                if self._defects.attempt_or(True, self._timeline.backward_ends):
                    self.arm()

        for namespace in (graph, autograd):
            if getattr(namespace, "_engine_run_backward", None) is original:
                namespace._engine_run_backward = run_backward

    def _backward_begins(self, frame: FrameType) -> None:
        self._timeline.backward_begins()
        if self._timeline.outermost_backward:
            self.disarm()
            self.backward_line = user_line(frame)
            self.on_backward(time.time_ns() // 1000, self.backward_line)

    def _before_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        self.optimizer_begins(has_closure=callable(closure))

    def _after_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        self.optimizer_ends()

    def optimizer_begins(self, has_closure: bool = False) -> None:
        if self._is_on():
            self.on_optimizer()
            self._attempt(self._timeline.optimizer_begins, has_closure)

    def optimizer_ends(self) -> None:
        if self._is_on():
            self._attempt(self._timeline.optimizer_ends)
            if not self._timeline.in_backward:
                self.arm()
