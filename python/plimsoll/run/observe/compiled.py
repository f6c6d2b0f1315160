"""Observes torch.compile from outside, so that compilation, guards and compiled code do not change.

After the script imports `torch._dynamo` (the observer never imports it):
- the forward hook is removed before compiled code checks its guards or looks at any module;
- the observer's functions are marked as not compilable, in case dynamo meets a frame of the observer;
- a compiled optimizer step does not run hooks. While dynamo traces an optimizer's state, the observer learns which compiled
  callables contain an optimizer step. A call of such a callable ends a step.
"""

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from plimsoll.run.attribution import Attribution
from plimsoll.run.observe.hooks import Hooks
from plimsoll.run.observe.phases import Timeline
from plimsoll.run.torch_patches.after_import import after_import
from plimsoll.wrapping import around

_OWN = ("plimsoll.run", "plimsoll.trackers", "plimsoll.wrapping")


class Compiled:
    def __init__(self, hooks: Hooks, timeline: Timeline, attribution: Attribution) -> None:
        self._hooks = hooks
        self._timeline = timeline
        self._attribution = attribution
        self._local = threading.local()
        # Dynamo's callbacks by id, one for each use of torch.compile. Held, so that no other object gets the same id.
        self._known: dict[int, Any] = {}
        self._optimizers: dict[int, weakref.WeakSet[Any]] = {}  # in a callback's code, by the callback's id

    def install(self) -> None:
        after_import.call("torch._dynamo.eval_frame", self._wrap_eval_frame)
        after_import.call("torch._dynamo.variables.optimizer", self._wrap_optimizer_variable)
        after_import.call("torch.nn.modules.module", self._wrap_compile_in_place)

    def _wrap_eval_frame(self, eval_frame: Any) -> None:
        _keep_from_compiling(eval_frame.skip_code)
        name = "_maybe_set_eval_frame" if hasattr(eval_frame, "_maybe_set_eval_frame") else "set_eval_frame"
        original = getattr(eval_frame, name)

        def set_eval_frame(callback: Any) -> Any:
            self._switched(callback, sys._getframe(1))
            return original(callback)

        eval_frame.skip_code(set_eval_frame.__code__)
        setattr(eval_frame, name, set_eval_frame)
        self._wrap_optimized_module(eval_frame)
        self._keep_optimizer_hooks(eval_frame)

    def _entered(self) -> list[tuple[int, Any]]:
        """This thread's torch frames that switched dynamo on or off and have not switched it back yet."""
        if not hasattr(self._local, "entered"):
            self._local.entered = []
        return self._local.entered

    def _switched(self, callback: Any, frame: types.FrameType) -> None:
        # The same frame calls twice: when it enters compiled (or excluded) code and when it leaves that code.
        entered = self._entered()
        if entered and entered[-1][0] == id(frame):
            _, left = entered.pop()
            if callable(left):
                self._left(left)
                self._attribution.compiled_code_left()
            self._back_to_eager()
            return
        if callable(callback):
            self._attribution.compiled_code_entered()
            self._enter(callback)
        entered.append((id(frame), callback))

    def _enter(self, callback: Any) -> None:
        holds_optimizer = id(callback) in self._optimizers
        if self._timeline.last_phase_was_backward:
            # An optimizer step or the next forward of an accumulation: known after the first call of the callable.
            if holds_optimizer or id(callback) not in self._known:
                self._hooks.disarm()
            if holds_optimizer:
                self._hooks.optimizer_begins()
                for optimizer in self._optimizers[id(callback)]:
                    self._attribution.compiled_step_begins(optimizer)
                return
            if id(callback) not in self._known:
                return
        self._hooks.forward_begins()
        if holds_optimizer:
            self._timeline.expect_optimizer()

    def _left(self, callback: Any) -> None:
        self._known[id(callback)] = callback
        if id(callback) in self._optimizers:
            for optimizer in self._optimizers[id(callback)]:
                self._attribution.compiled_step_ends(optimizer)
            self._hooks.optimizer_ends()
        elif self._timeline.last_phase_was_backward:
            self._hooks.arm()
            self._hooks.forward_begins()

    def _back_to_eager(self) -> None:
        if not self._entered():
            self._hooks.compiled_code_left()

    def _wrap_optimized_module(self, eval_frame: Any) -> None:
        # Its __call__ warns of global hooks, so the forward hook must be removed before.
        optimized_module = eval_frame.OptimizedModule
        original = optimized_module.__dict__.get("__call__")
        if original is None:
            return

        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            self._hooks.forward_begins()
            self._attribution.compiled_model_called(model._orig_mod)
            self._attribution.compiled_code_entered()
            try:
                return original(model, *args, **kwargs)
            finally:
                self._attribution.compiled_code_left()
                self._back_to_eager()

        call.__name__ = "__call__"
        eval_frame.skip_code(call.__code__)
        optimized_module.__call__ = call

    def _wrap_compile_in_place(self, modules: Any) -> None:
        """model.compile() stores the compiled callable in the model."""

        @around(modules.Module, "compile")
        def compile_in_place(original: Any, model: Any, *args: Any, **kwargs: Any) -> None:
            original(model, *args, **kwargs)
            compiled = model._compiled_call_impl

            def call(*given: Any, **named: Any) -> Any:
                self._attribution.compiled_model_called(model)
                return compiled(*given, **named)

            # Dynamo recognizes its own functions by their attributes, also in a compiled model within another.
            functools.update_wrapper(call, compiled)
            eval_frame = sys.modules.get("torch._dynamo.eval_frame")
            if eval_frame is not None:  # Absent if torch.compile is switched off.
                eval_frame.skip_code(call.__code__)
            model._compiled_call_impl = call

    def _wrap_optimizer_variable(self, module: Any) -> None:
        @around(module.OptimizerVariable, "call_method")
        def call_method(original: Any, variable: Any, tx: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            if name != "_init_group":
                return original(variable, tx, name, *args, **kwargs)
            self._tracing_an_optimizer(variable.value)
            with self._attribution.creating_state():  # The compiler calls it and traces the rest.
                return original(variable, tx, name, *args, **kwargs)

    def _tracing_an_optimizer(self, optimizer: Any) -> None:
        for _, callback in reversed(self._entered()):
            if callable(callback):
                self._known[id(callback)] = callback
                known = self._optimizers.setdefault(id(callback), weakref.WeakSet())
                if optimizer in known:
                    return
                is_first = not known
                known.add(optimizer)
                self._attribution.optimizer_is_compiled(optimizer)
                if is_first and not self._timeline.last_phase_was_backward:
                    self._timeline.expect_optimizer()
                    return
                if is_first:
                    self._hooks.disarm()
                    self._hooks.optimizer_begins()
                self._attribution.compiled_step_begins(optimizer)
                return

    def _keep_optimizer_hooks(self, eval_frame: Any) -> None:
        """Older versions of torch remove optimizer hooks, also of eager steps, when something is compiled."""
        patcher = getattr(eval_frame, "TorchPatcher", None)
        if patcher is None:
            return

        @around(patcher, "patch")
        def patch(original: Any) -> Any:
            result = original()
            _rehook_optimizers(self._hooks)
            return result


def _rehook_optimizers(hooks: Hooks) -> None:
    import torch

    base = torch.optim.Optimizer
    hooked_code = {c for c in base.profile_hook_step.__code__.co_consts if isinstance(c, types.CodeType)}

    def every(kind: type) -> list[type]:
        subclasses: list[type] = kind.__subclasses__()
        return [kind, *(deeper for child in subclasses for deeper in every(child))]

    for kind in every(base):
        step = kind.__dict__.get("step")
        if not isinstance(step, types.FunctionType) or not getattr(step, "hooked", False):
            continue
        inner: Any = step
        while inner is not None and getattr(inner, "__code__", None) not in hooked_code:
            inner = getattr(inner, "__wrapped__", None)
        if inner is None:
            setattr(kind, "step", _with_phases(step, hooks))


def _with_phases(step: Callable[..., Any], hooks: Hooks) -> Callable[..., Any]:
    import torch

    @functools.wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return step(self, *args, **kwargs)
        hooks.optimizer_begins(has_closure=callable(args[0] if args else kwargs.get("closure")))
        result = step(self, *args, **kwargs)
        hooks.optimizer_ends()
        return result

    return stepped


def _keep_from_compiling(skip_code: Callable[[types.CodeType], None]) -> None:
    def skip(code: types.CodeType) -> None:
        skip_code(code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                skip(constant)

    for name, module in list(sys.modules.items()):
        if not name.startswith(_OWN):
            continue
        for value in list(vars(module).values()):
            members = list(vars(value).values()) if isinstance(value, type) else [value]
            for member in members:
                member = getattr(member, "__func__", getattr(member, "fget", member))
                code = getattr(member, "__code__", None)
                if isinstance(code, types.CodeType) and getattr(member, "__module__", "").startswith(_OWN):
                    skip(code)
