"""The category, module and cause of each live byte at the peak.

A tracker of the native part (plimsoll.trackers) is active from the initialisation of CUDA to the end. Without a native part for
this torch, the record says so and has everything else.

While compiled code runs, module hooks are off, and memory belongs to the module around it. The tensors of a model that is compiled
as a whole are named when the model is called.

The peak by line of code comes from the allocator's own history (run/contents), because that works with each torch. The sums of the
two are compared with the allocator's peak.
"""

import contextlib
import importlib
import json
import weakref
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from plimsoll.run.observe.defects import Defects
from plimsoll.run.torch_patches import ddp_buckets
from plimsoll.run.torch_patches.after_import import after_import

_FSDP = "torch.distributed.fsdp"
# Users do not think of these as modules.
_WRAPPERS = ["_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_orig_mod"]

_Entry = tuple[str, str, bool, int]  # of a module: full name, class, whether fully_shard was applied, parameters


class _Later:
    """A module that is imported at its first use: the import of FSDP2 takes a second."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


class Attribution:
    """`wanted` is False with --no-categories: then there is no tracker."""

    def __init__(self, wanted: bool, depth: int, defects: Defects) -> None:
        self._wanted = wanted
        self._depth = depth
        self._defects = defects
        self._native: Any | None = None
        self._state_creation: Any = None
        self._hooks: Any | None = None
        self._patches: Any | None = None
        self._modules: dict[str, _Entry] = {}  # of the models that ran, by full name; the models may be gone
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()  # their roots
        # No step has begun: memory from outside of modules is data, or a copy of weights, not Activation.
        self._is_preparing = True
        self._compiled = 0  # the depth of compiled code that runs now
        self._followed: weakref.WeakSet[Any] = weakref.WeakSet()  # states of FSDP2
        self.reason: str | None = None  # why there are no categories

    def start(self) -> None:
        """REQUIRES: CUDA is being initialised in this process."""
        if not self._wanted:
            return
        try:
            native = importlib.import_module("plimsoll.native")
        except ImportError as error:
            self.reason = f"categories and modules are not known: {error}"
            return
        try:
            native._C.start_late_sources()
        except RuntimeError as error:  # The allocator has no trace.
            self.reason = f"categories and modules are not known: {str(error).splitlines()[0]}"
            return
        self._state_creation = native._C.StateCreation
        self._native = native._C.Tracker(_Later("plimsoll.trackers.fsdp2.parts"))
        self._hooks = importlib.import_module("plimsoll.trackers.hooks").hooks
        self._hooks.guard_with(self._defects)
        self._native.name_apart()
        self._native.enter()
        self._native.set_preparing(True)
        if self._compiled:  # CUDA's first use is in compiled code.
            self._hooks.suspend()
        self._hooks.acquire()
        after_import.call(_FSDP, lambda _: self._defects.attempt(self._see_fsdp))
        self._defects.attempt(ddp_buckets.install, native._C.GradientBuckets)

    def _see_fsdp(self) -> None:
        self._patches = importlib.import_module("plimsoll.trackers.fsdp2.patches").patches
        self._patches.acquire()
        stages = importlib.import_module("plimsoll.trackers.fsdp2.stages")
        setattr(stages, "on_forward", lambda state, module: self._defects.attempt(self._fsdp_forward, state, module))

    def _fsdp_forward(self, state: Any, module: Any) -> None:
        """The outermost module comes first, with all modules below it."""
        if self._native is None or state in self._followed:
            return
        for part in module.modules():
            if hasattr(type(part), "_get_fsdp_state"):
                self._followed.add(part._get_fsdp_state())
        self._native.add_root(module)

    def forked(self) -> None:
        """In a forked child, which has no tracker, or starts its own."""
        if self._hooks is not None:
            self._hooks.forget()
        if self._patches is not None:
            self._patches.forget()
        self._followed.clear()
        self._native = self._hooks = self._patches = None

    def at_border(self, training: bool) -> None:
        """A phase ended. Reads new models now, because at the end they may be gone. `training`: the first step begins, or has
        begun."""
        if self._native is None:
            return
        self._note_modules(self._native.roots())
        if training and self._is_preparing:
            self._is_preparing = False
            self._native.set_preparing(False)

    def _note_modules(self, roots: Iterable[tuple[str, Any]]) -> None:
        for name, root in roots:
            if root not in self._seen:
                self._seen.add(root)
                for path, module in root.named_modules(prefix=name):
                    self._modules[path] = _entry_of(path, module)

    def compiled_model_called(self, model: Any) -> None:
        self._defects.attempt(self._name_what_it_holds, model)

    def _name_what_it_holds(self, model: Any) -> None:
        if self._native is None or self._compiled or len(self._native.parents()) > 1:
            return  # The module around it is known, and names it.
        self._native.track_module(model)
        self._note_modules([(type(model).__name__, model)])

    def compiled_code_entered(self) -> None:
        self._compiled += 1
        if self._hooks is not None and self._compiled == 1:
            self._hooks.suspend()

    def compiled_code_left(self) -> None:
        self._compiled -= 1
        if self._hooks is not None and self._compiled == 0:
            self._hooks.resume()

    def creating_state(self) -> AbstractContextManager[Any]:
        """Memory that is allocated within is an optimizer's state."""
        return self._state_creation() if self._native is not None else contextlib.nullcontext()

    def compiled_step_begins(self, optimizer: Any) -> None:
        if self._hooks is not None:
            self._defects.attempt(self._hooks.compiled_step_begins, optimizer)

    def compiled_step_ends(self, optimizer: Any) -> None:
        if self._hooks is not None:
            self._defects.attempt(self._hooks.compiled_step_ends, optimizer)

    def optimizer_is_compiled(self, optimizer: Any) -> None:
        """No hook sees a model that runs only in compiled code, so the optimizer names its parameters."""
        self._defects.attempt(self._name_parameters, optimizer)

    def _name_parameters(self, optimizer: Any) -> None:
        if self._native is None:
            return
        known = {id(parameter) for _, root in self._native.roots() for parameter in root.parameters()}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in known and parameter.is_cuda:
                    self._native.categorise(parameter, "Parameter")

    def finish(self) -> None:
        if self._native is None:
            return
        assert self._hooks is not None
        self.at_border(training=False)
        self._hooks.release()
        if self._patches is not None:
            self._patches.release()
        self._native.leave()

    def record(self, device: int, active_peak: int) -> dict[str, Any]:
        """The fields of the record; "peak" has more fields of its peak. REQUIRES: finish() came before."""
        if self._native is None:
            return {"attribution": self.reason}
        found: dict[str, Any] = json.loads(
            self._native.attribution(f"cuda:{device}", list(self._modules.values()), _WRAPPERS, self._depth)
        )
        total = sum(found["peak"]["categories"].values())
        if total != active_peak:
            return {
                "attribution": f"categories and modules are not known: the tracker saw a peak of {total} bytes, and the "
                f"allocator counted {active_peak}"
            }
        return {"attribution": None, **found}


def _entry_of(name: str, module: Any) -> _Entry:
    kind = type(module)
    is_unit = hasattr(kind, "_get_fsdp_state")
    if is_unit and len(kind.__bases__) > 1:
        kind = kind.__bases__[-1]  # fully_shard gives the module a class of its own
    return name, kind.__name__, is_unit, sum(parameter.numel() for parameter in module.parameters())
