"""Memory that is not there: tensors under FakeTensorMode, and on meta. No allocator is asked for it, so the tensors that
operators give are looked at instead, as torch's trackers do: what operators take within them is not seen.

DTensor computes the shapes of its results by running operators on fake tensors of the global shape, under the script's own fake
mode where there is one; those are nobody's memory, and are passed over."""

import functools
import threading
from typing import Any, Optional

import torch
import torch.distributed._tools.fake_collectives
from torch._guards import active_fake_mode
from torch.distributed._tools.common_utils import get_untyped_storages
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from plimsoll.native import _C


def note(tensor: torch.Tensor) -> None:
    """The memory that the tensor, or what is in it, stands for counts from now on."""
    for storage in get_untyped_storages(tensor):
        # Of a fake tensor the device is the one it stands for, and of its storage meta.
        if storage.device.type == "meta":
            _C.note_storage(storage, tensor.device, storage.size())


def is_fake(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:  # It has no storage of its own.
        return False
    return any(storage.device.type == "meta" for storage in get_untyped_storages(tensor))


_PROPAGATION = "_propagate_tensor_meta_non_cached"


class _Thread(threading.local):
    propagating = False


_thread = _Thread()


class FakeMemory(TorchDispatchMode):
    """While it is entered, tensors without memory are seen as they are made."""

    def __init__(self) -> None:
        super().__init__()
        self._fake_mode = active_fake_mode()
        self._resize = torch.UntypedStorage.resize_
        self._propagate = getattr(ShardingPropagator, _PROPAGATION)

    def __enter__(self) -> "FakeMemory":
        original = self._resize

        @functools.wraps(original)
        def resize(storage: torch.UntypedStorage, size: int) -> Any:
            result = original(storage, size)
            if storage.device.type == "meta":
                _C.noted_storage_resized(storage, size)
            return result

        propagate = self._propagate

        @functools.wraps(propagate)
        def propagate_unseen(*args: Any, **kwargs: Any) -> Any:
            outer, _thread.propagating = _thread.propagating, True
            try:
                return propagate(*args, **kwargs)
            finally:
                _thread.propagating = outer

        torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign, assignment]
        setattr(ShardingPropagator, _PROPAGATION, propagate_unseen)
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        torch.UntypedStorage.resize_ = self._resize  # type: ignore[method-assign]
        setattr(ShardingPropagator, _PROPAGATION, self._propagate)
        super().__exit__(*args)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Optional[Any] = None) -> Any:
        if any(kind is DTensor for kind in types):
            return NotImplemented  # It runs first, and comes here with its local tensors.
        if func is torch.ops._c10d_functional.wait_tensor.default and active_fake_mode():
            result = args[0]  # Its meta implementation makes a tensor where the real one makes none.
        else:
            result = func(*args, **kwargs or {})
        if active_fake_mode() is self._fake_mode and not _thread.propagating:
            tree_map_only(torch.Tensor, note, result)
        return result
