"""ModTracker: the modules that are running, forward or backward."""

import weakref
from collections.abc import Callable
from typing import Any

from torch import nn

from plimsoll.native import _C
from plimsoll.trackers.hooks import hooks

_KINDS = ("pre_fw_hook", "post_fw_hook", "pre_bw_hook", "post_bw_hook")


class ModTracker:
    """A drop-in for ``torch.distributed._tools.mod_tracker.ModTracker``.

    ``parents`` is the set of names of the running modules, and always contains ``Global``; ``is_bw`` is True if this thread is in
    a backward pass. Unlike torch's tracker, it is right if a pass ends early, if a module takes only keyword arguments, and on
    several threads.

    >>> import torch
    >>> from plimsoll import ModTracker
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    >>> with ModTracker() as tracker:
    ...     handle = model[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
    ...     out = model(torch.ones(1, 4))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self._native = _C.ModuleTracker()
        self._user_hooks: dict[str, Callable[..., Any]] = {}
        self._depth = 0

    @property
    def parents(self) -> set[str]:
        return set(self._native.parents())

    @property
    def is_bw(self) -> bool:
        return bool(_C.in_backward())

    def get_known_fqn(self, mod: nn.Module) -> str | None:
        """The name of a module if it or a parent of it has run."""
        name: str | None = self._native.known_fqn(mod)
        return name

    def register_user_hooks(
        self,
        pre_fw_hook: Callable[..., Any] | None = None,
        post_fw_hook: Callable[..., Any] | None = None,
        pre_bw_hook: Callable[..., Any] | None = None,
        post_bw_hook: Callable[..., Any] | None = None,
    ) -> None:
        """Registers one hook of each kind; clear them before a second registration. Each hook gets the module (None if it was freed).
        Forward hooks also get the arguments, or arguments and result. Backward hooks get gradients in torch's forms: the first
        gradient of an output as ``(gradient,)``, those of the inputs as ``([gradient, ...],)``, ``()`` if no input needs one."""
        given = dict(zip(_KINDS, (pre_fw_hook, post_fw_hook, pre_bw_hook, post_bw_hook)))
        new = {kind: hook for kind, hook in given.items() if hook is not None}
        for kind in new:
            if kind in self._user_hooks:
                raise AssertionError(f"there is a {kind} already: call clear_user_hooks before another is registered")
        self._user_hooks.update(new)
        self._native.clear_user_hooks()
        self._native.register_user_hooks(
            *(self._caller_of(kind) if kind in self._user_hooks else None for kind in given)
        )

    def _caller_of(self, kind: str) -> Callable[..., None]:
        """The native part must not keep the hook alive: Python's garbage collector does not see the native part's references."""
        tracker = weakref.ref(self)

        def call(*args: Any) -> None:
            alive = tracker()
            hook = alive._user_hooks.get(kind) if alive is not None else None
            if hook is not None:
                hook(*args)

        return call

    def clear_user_hooks(self) -> None:
        self._native.clear_user_hooks()
        self._user_hooks.clear()

    def __enter__(self) -> "ModTracker":
        if self._depth == 0:
            self._native.enter()
            hooks.acquire()
        self._depth += 1
        return self

    def __exit__(self, *args: Any) -> None:
        if self._depth == 0:
            raise RuntimeError("the tracker was exited, but it is not entered")
        self._depth -= 1
        if self._depth == 0:
            hooks.release()
            self._native.exit()
