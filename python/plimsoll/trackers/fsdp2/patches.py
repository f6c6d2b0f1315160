"""Installs the wrappers in FSDP2 while a tracker is entered, and restores the originals after that.

Wrappers replace functions of FSDP2. fully_shard registered the forward hooks of FSDP modules as bound methods, so wrappers
replace them in the modules' own hook tables.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

from plimsoll.trackers.fsdp2 import memory, stages
from plimsoll.wrapping import replace, wrapper

_ORIGINAL = "_plimsoll_original"  # attribute of a wrapped hook: the original hook


@wrapper
def _state_init(function: Any, state: Any, *args: Any, **kwargs: Any) -> None:
    """fully_shard registers the hooks of a state in this function."""
    function(state, *args, **kwargs)
    patches.exchange_hooks(state)


class Patches:
    """The installed wrappers. `acquire` and `release` come in pairs."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._undo = ExitStack()
        self._exchanged: list[tuple[Callable[[], Any], int]] = []  # a weak reference to a hook table, and the hook's id

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._replace_all()

    def _replace_all(self) -> None:
        for owner, name, wrap in (*memory.FUNCTIONS, *stages.FUNCTIONS, (FSDPState, "init", _state_init)):
            replace(owner, name, wrap, self._undo)

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._put_all_back()

    def _put_all_back(self) -> None:
        self._undo.close()
        for reference, number in self._exchanged:
            table = reference()
            original = getattr(table.get(number), _ORIGINAL, None) if table is not None else None
            if table is not None and original is not None:
                table[number] = original
        self._exchanged.clear()

    def forget(self) -> None:
        """In a forked child: the parent's trackers do not observe it, and another thread of the parent may have held the lock."""
        self._lock = threading.RLock()
        if self._users:
            self._users = 1
            self.release()

    def exchange_hooks(self, state: Any) -> None:
        """Wraps the forward hooks of a state's modules, unless they are wrapped."""
        if self._users == 0:
            return
        for handle in (state._pre_forward_hook_handle, state._post_forward_hook_handle):
            for one in getattr(handle, "handles", (handle,)):
                table = one.hooks_dict_ref()
                hook = table.get(one.id) if table is not None else None
                if hook is None or hasattr(hook, _ORIGINAL):
                    continue
                before = any(table is module._forward_pre_hooks for module in state._modules)
                table[one.id] = around = (stages.around_pre_forward if before else stages.around_post_forward)(
                    state, hook
                )
                setattr(around, _ORIGINAL, hook)
                self._exchanged.append((one.hooks_dict_ref, one.id))


patches = Patches()
