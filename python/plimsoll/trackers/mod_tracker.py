"""ModTracker: which modules are running, forward or backward."""

from typing import Any, Callable, Optional, Set

from torch import nn

from plimsoll.native import _C
from plimsoll.trackers.hooks import hooks


class ModTracker:
    """A drop-in for ``torch.distributed._tools.mod_tracker.ModTracker``.

    ``parents`` is the set of the names of the modules that are running, and always ``Global``; ``is_bw`` whether this thread
    is in a backward pass. Unlike torch's it is right where a pass ends early, where modules take keyword arguments only, and
    on several threads.

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
        self._has_user_hooks = False

    @property
    def parents(self) -> Set[str]:
        return set(self._native.parents())

    @property
    def is_bw(self) -> bool:
        return bool(_C.in_backward())

    def get_known_fqn(self, mod: nn.Module) -> Optional[str]:
        """The name of a module that has run, or whose parent has."""
        name: Optional[str] = self._native.known_fqn(mod)
        return name

    def register_user_hooks(
        self,
        pre_fw_hook: Optional[Callable[..., Any]] = None,
        post_fw_hook: Optional[Callable[..., Any]] = None,
        pre_bw_hook: Optional[Callable[..., Any]] = None,
        post_bw_hook: Optional[Callable[..., Any]] = None,
    ) -> None:
        """Markers, called with the module (None where it is gone) and the tensors at that place: inputs; inputs and outputs; and
        in backward, in the forms that torch gives them, the first gradient of an output, ``(gradient,)``, and those of the inputs,
        ``([gradient, ...],)``; ``()`` where none of them needs one. Clear them before others are registered."""
        if self._has_user_hooks:
            raise AssertionError("there are user hooks already: call clear_user_hooks before others are registered")
        self._native.register_user_hooks(pre_fw_hook, post_fw_hook, pre_bw_hook, post_bw_hook)
        self._has_user_hooks = True

    def clear_user_hooks(self) -> None:
        self._native.clear_user_hooks()
        self._has_user_hooks = False

    def __enter__(self) -> "ModTracker":
        self._native.enter()
        hooks.acquire()
        return self

    def __exit__(self, *args: Any) -> None:
        hooks.release()
        self._native.exit()
