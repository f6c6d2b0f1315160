"""What drives the timeline in eager mode: module calls, backward, optimizer steps.

[Note: the forward hook comes and goes] A global module hook costs every module call a slower path, and torch.compile
treats modules otherwise while one is there. So it is armed only where a forward may begin; the first module call takes
it away again, and compiled code (see `compiled`) takes it away before it looks at any module.
"""

import functools
import sys
import time
from typing import Any, Callable, Optional

from plimsoll.run.lines import Line, user_line
from plimsoll.run.phases import Timeline


class Hooks:
    def __init__(self, torch: Any, timeline: Timeline, is_on: Callable[[], bool]) -> None:
        self._torch = torch
        self._timeline = timeline
        self._is_on = is_on
        self._handle: Optional[Any] = None
        self.backward_line: Optional[Line] = None  # who called the outermost backward of late
        self.on_optimizer: Callable[[], None] = lambda: None
        self.on_backward: Callable[[int, Optional[Line]], None] = lambda time_us, line: None

    def install(self) -> None:
        self._wrap_backward()
        from torch.optim import optimizer

        optimizer.register_optimizer_step_pre_hook(self._before_optimizer)
        optimizer.register_optimizer_step_post_hook(self._after_optimizer)
        self.arm()

    # -- forward -------------------------------------------------------------------------------------------------------

    def arm(self) -> None:
        if self._handle is None and self._is_on():
            self._handle = self._torch.nn.modules.module.register_module_forward_pre_hook(self._module_called)

    def disarm(self) -> bool:
        """True where the hook was armed."""
        handle, self._handle = self._handle, None
        if handle is None:
            return False
        handle.remove()
        return True

    def forward_begins(self) -> None:
        """A module is called, or compiled code entered, where the hook was armed."""
        if self.disarm() and self._is_on():
            try:
                self._timeline.forward_begins()
            except SystemExit:
                self.arm()  # a script that swallows it is told again
                raise

    def _module_called(self, module: Any, args: Any) -> None:
        if self._torch.compiler.is_compiling() or self._torch.jit.is_scripting():
            return
        self.forward_begins()

    # -- backward --------------------------------------------------------------------------------------------------------

    def _wrap_backward(self) -> None:
        """torch.autograd's one way into the engine, in each namespace that took the name."""
        graph, autograd = self._torch.autograd.graph, self._torch.autograd
        original = graph._engine_run_backward

        @functools.wraps(original)
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if not self._is_on():
                return original(*args, **kwargs)
            line = user_line(sys._getframe(1))
            self._timeline.backward_begins()
            if self._timeline.outermost_backward:
                self.disarm()
                self.backward_line = line
                self.on_backward(time.time_ns() // 1000, line)
            try:
                return original(*args, **kwargs)
            finally:
                if self._timeline.backward_ends():
                    self.arm()

        for namespace in (graph, autograd):
            if getattr(namespace, "_engine_run_backward", None) is original:
                namespace._engine_run_backward = run_backward

    # -- optimizer -------------------------------------------------------------------------------------------------------

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
            self._timeline.optimizer_begins(has_closure)

    def optimizer_ends(self) -> None:
        if self._is_on():
            self._timeline.optimizer_ends()
            if not self._timeline.in_backward:
                self.arm()
