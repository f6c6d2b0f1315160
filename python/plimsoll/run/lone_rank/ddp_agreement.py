"""Where torch's C++ makes the ranks agree on numbers: DDP.

DDP sends sizes and bucket indices through the device and obeys what comes back. The pretend device gives back zeros:
no bucket, no parameter. While one of these calls runs, a dispatch mode remembers what the host copied to the device,
lets every collective answer with it (the peers hold the same values) and hands it out when the host reads it back.
All the operations run as well, so device memory is as without it.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch._C import _distributed_c10d
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from plimsoll.run.lone_rank import watchdog_works

_aten = torch.ops.aten


class _Sent(NamedTuple):
    storage: StorageWeakRef  # weak, to free device memory when torch does; held, so that its address stays its own
    offset: int
    contents: torch.Tensor  # on the CPU, flat


class SameValues(TorchDispatchMode):
    """Remembers, by device storage, the small integers that the host sent there."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: dict[int, _Sent] = {}  # by the address of torch's storage object

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is _aten.copy_.default:
            self._copied(args[0], args[1])
        elif func is _aten._to_copy.default:
            self._copied(result, args[0])
        elif func is _aten._local_scalar_dense.default:
            contents = self._contents(args[0])
            return result if contents is None else contents.item()
        elif func.namespace == "c10d" and func._opname == "allgather_":
            for outputs, sent in zip(args[0], args[1]):
                for output in outputs:
                    self._remember(output, self._contents(sent))
        if func.namespace == "c10d":
            watchdog_works.collective_was_made()
        return result

    def _copied(self, target: torch.Tensor, source: torch.Tensor) -> None:
        if target.device.type == "cpu" and source.device.type != "cpu":
            contents = self._contents(source)
            if contents is not None:
                target.copy_(contents)
        elif target.device.type != "cpu":
            self._remember(target, source if source.device.type == "cpu" else self._contents(source))

    def _remember(self, target: torch.Tensor, contents: torch.Tensor | None) -> None:
        if contents is not None and target.is_contiguous():
            storage = target.untyped_storage()
            flat = contents.detach().to(target.dtype, copy=True).reshape(-1)
            self._sent[storage._cdata] = _Sent(StorageWeakRef(storage), target.storage_offset(), flat)

    def _contents(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.device.type == "cpu":
            return tensor
        sent = self._sent.get(tensor.untyped_storage()._cdata)
        if sent is None or sent.contents.dtype != tensor.dtype or not tensor.is_contiguous():
            return None
        first = tensor.storage_offset() - sent.offset
        if first < 0 or first + tensor.numel() > sent.contents.numel():
            return None
        return sent.contents[first : first + tensor.numel()].reshape(tensor.shape)


def _with_agreement(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with SameValues():
            return function(*args, **kwargs)

    return call


# How often each reducer was asked to rebuild its buckets.
_asked: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
_LAST_WAIT = 8  # a reducer that has not rebuilt by then (unused parameters) never will


def _let_go_of_reduced_buckets(reducer: Any) -> None:
    """Waits until torch's NCCL watchdog, which looks ten times a second, has seen that all collectives are complete.

    DDP waits for its reductions in a way that leaves the watchdog to drop the last reference to a bucket. A step on the
    pretend GPU is shorter than the watchdog's period: whether what DDP broadcast when it was made, or the first,
    undivided bucket, is still there when the others are made would be chance. With this it never is.
    """
    asked = _asked[reducer] = _asked.get(reducer, 0) + 1
    if asked > _LAST_WAIT:
        return
    watchdog_works.let_the_watchdog_look()


def _rebuilding(rebuild: Callable[[Any], bool]) -> Callable[[Any], bool]:
    @functools.wraps(rebuild)
    def call(reducer: Any) -> bool:
        watchdog_works.forward_begins()
        _let_go_of_reduced_buckets(reducer)
        with SameValues():
            rebuilt = rebuild(reducer)
        if rebuilt:
            _asked[reducer] = _LAST_WAIT
        return rebuilt

    return call


def replacements() -> dict[str, Any]:
    reducer = _distributed_c10d.Reducer
    setattr(reducer, "_rebuild_buckets", _rebuilding(reducer._rebuild_buckets))
    verify = "_verify_params_across_processes"
    return {verify: _with_agreement(getattr(_distributed_c10d, verify))}
