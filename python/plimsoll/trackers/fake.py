"""Tensors without memory: those under FakeTensorMode and on meta. They do not use an allocator. Instead the tracker looks at the
results of operators, as torch's trackers do, so it does not see temporaries inside operators. DTensor computes the shapes of its
results with operators on fake tensors of the global shape: these do not count.

[Note: when looking begins] Looking at results costs each operator about ten microseconds. So it begins with the tracker's scope only
if a registered tensor has no memory or if a fake mode is active. Within the scope, it begins when a module gets a parameter or buffer
without memory, or when a module is called with such a tensor (or only with keyword arguments, and has such parameters). From then on
the module's tensors and arguments count, but not tensors that the script made before, outside of modules. Looking ends with the scope,
or when a whole model with memory runs: a model may be made on meta and trained elsewhere.
"""

import threading
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import torch
import torch.distributed._tools.fake_collectives
from torch._guards import active_fake_mode
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed._tools.common_utils import get_untyped_storages
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves, tree_map_only

from plimsoll.native import _C
from plimsoll.wrapping import replace, wrapper


def note(tensor: torch.Tensor) -> None:
    """Counts the memory that the tensor (or the tensors inside it) would have."""
    for storage in get_untyped_storages(tensor):
        # A fake tensor has the simulated device; its storage has meta.
        if storage.device.type == "meta":
            _C.note_storage(storage, tensor.device, storage.size())


def is_fake(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:  # It has no storage.
        return False
    return any(storage.device.type == "meta" for storage in get_untyped_storages(tensor))


class _Thread(threading.local):
    propagating = False


_thread = _Thread()


@wrapper
def _resize(resize: Any, storage: torch.UntypedStorage, size: int) -> Any:
    result = resize(storage, size)
    if storage.device.type == "meta":
        _C.noted_storage_resized(storage, size)
    return result


@wrapper
def _propagate_unseen(propagate: Any, *args: Any, **kwargs: Any) -> Any:
    outer, _thread.propagating = _thread.propagating, True
    try:
        return propagate(*args, **kwargs)
    finally:
        _thread.propagating = outer


class FakeMemory(TorchDispatchMode):
    """While it is entered, counts tensors without memory when they are made."""

    def __init__(self) -> None:
        super().__init__()
        self._fake_mode = active_fake_mode()
        self._undo = ExitStack()

    def __enter__(self) -> "FakeMemory":
        replace(torch.UntypedStorage, "resize_", _resize, self._undo)
        replace(ShardingPropagator, "_propagate_tensor_meta_non_cached", _propagate_unseen, self._undo)
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        self._undo.close()
        super().__exit__(*args)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None) -> Any:
        if any(kind is DTensor for kind in types):
            return NotImplemented  # DTensor runs first, then dispatches its local tensors here.
        if func is torch.ops._c10d_functional.wait_tensor.default and active_fake_mode():
            result = args[0]  # Only its meta implementation makes a tensor.
        else:
            result = func(*args, **kwargs or {})
        if active_fake_mode() is self._fake_mode and not _thread.propagating:
            tree_map_only(torch.Tensor, note, result)
        return result


def _lacks_memory(thing: Any) -> bool:
    """is_fake for any argument of a module, in tens of nanoseconds."""
    return getattr(thing, "is_meta", False) or type(thing) is FakeTensor


def _held_and_given(module: torch.nn.Module, args: Any) -> Iterable[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()
    yield from (leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor))


class _Watches:
    """All open watches. The native part, which sees each module call, calls them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: tuple[MemorylessWatch, ...] = ()

    def add(self, watch: "MemorylessWatch") -> None:
        with self._lock:
            self._open = (*self._open, watch)
        self.update()

    def remove(self, watch: "MemorylessWatch") -> None:
        with self._lock:
            self._open = tuple(one for one in self._open if one is not watch)
        self.update()

    def update(self) -> None:
        """If a watch is looking, it gets every forward; if not, only those with tensors without memory."""
        watches = self._open
        _C.set_on_memoryless(self._before_forward if watches else None, any(watch.looks for watch in watches))

    def _before_forward(self, module: torch.nn.Module, args: Any) -> None:
        for watch in self._open:
            watch.before_forward(module, args)


_watches = _Watches()


class MemorylessWatch:
    """Begins and ends looking in a tracker's scope, on the tracker's thread: see [Note: when looking begins]."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker  # the native one
        self._thread = threading.get_ident()
        self._modes = len(_get_current_dispatch_mode_stack())
        self._memory: FakeMemory | None = None
        self._handles: list[Any] = [
            register_module_parameter_registration_hook(self._registered),
            register_module_buffer_registration_hook(self._registered),
        ]
        _watches.add(self)

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._end()
        _watches.remove(self)

    @property
    def looks(self) -> bool:
        return self._memory is not None

    def _registered(self, module: torch.nn.Module, name: str, tensor: Any) -> None:
        if _lacks_memory(tensor):
            self._begin([tensor])

    def before_forward(self, module: torch.nn.Module, args: Any) -> None:
        """Called before the tracker sees the module, so that its tensors count when it runs."""
        if not self.looks:
            if any(map(_lacks_memory, tree_leaves(args) or module._parameters.values())):
                self._begin(_held_and_given(module, args))
        elif self._is_whole_model_with_memory(module, args):
            self._end()

    def _begin(self, tensors: Iterable[torch.Tensor]) -> None:
        if threading.get_ident() != self._thread or active_fake_mode() is not None:
            return
        modes = _get_current_dispatch_mode_stack()
        # Inside a mode of the script, which ends before ours, looking waits for the next call.
        if len(modes) == self._modes and not any(isinstance(mode, FakeMemory) for mode in modes):
            self._memory = FakeMemory()
            self._memory.__enter__()
            _watches.update()
        for tensor in tensors:
            if _lacks_memory(tensor):
                note(tensor)

    def _is_whole_model_with_memory(self, module: torch.nn.Module, args: Any) -> bool:
        if threading.get_ident() != self._thread or len(self._tracker.parents()) > 1:
            return False
        tensors = list(_held_and_given(module, args))
        return bool(tensors) and not any(map(_lacks_memory, tensors))

    def _end(self) -> None:
        modes = _get_current_dispatch_mode_stack()
        if self._memory is not None and modes and modes[-1] is self._memory:
            self._memory.__exit__(None, None, None)
            self._memory = None
            _watches.update()
