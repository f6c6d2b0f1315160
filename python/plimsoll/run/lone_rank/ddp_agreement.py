"""DDP's ranks agree on numbers in torch's C++ code.

DDP sends sizes and bucket indices through the device and uses the values that come back, which would be zeros here. During these
calls a dispatch mode stores the values that the host copied to the device. Every collective answers with them, because the peers
hold the same values, and read-backs return them. All operations run too, so device memory does not change.
"""

import weakref
from typing import Any, NamedTuple

import torch
from torch._C import _distributed_c10d
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from plimsoll.run.lone_rank import watchdog_works
from plimsoll.wrapping import replace, wrapper

_aten = torch.ops.aten


class _Sent(NamedTuple):
    storage: StorageWeakRef  # Weak: device memory is freed as usual. Held: no other storage gets its address.
    offset: int
    contents: torch.Tensor  # on the CPU, flat


class SameValues(TorchDispatchMode):
    """Stores the small integers that the host sent to the device, by device storage."""

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


@wrapper
def _with_agreement(function: Any, *args: Any, **kwargs: Any) -> Any:
    with SameValues():
        return function(*args, **kwargs)


# The number of rebuild requests per reducer.
_asked: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
_LAST_WAIT = 8  # A reducer that has not rebuilt its buckets by then (unused parameters) never does.


@wrapper
def _rebuilding(rebuild: Any, reducer: Any) -> bool:
    watchdog_works.forward_begins()
    asked = _asked[reducer] = _asked.get(reducer, 0) + 1
    if asked <= _LAST_WAIT:
        # The watchdog, which runs ten times a second, drops the last reference to a bucket that DDP has reduced. A step on the
        # pretend GPU is shorter. Without this wait it would be random whether the first bucket and DDP's initial broadcast are
        # still allocated when the new buckets are.
        watchdog_works.wait_for_watchdogs()
    with SameValues():
        rebuilt: bool = rebuild(reducer)
    if rebuilt:
        _asked[reducer] = _LAST_WAIT
    return rebuilt


def replacements() -> dict[str, Any]:
    replace(_distributed_c10d.Reducer, "_rebuild_buckets", _rebuilding)
    verify = "_verify_params_across_processes"
    return {verify: _with_agreement(getattr(_distributed_c10d, verify))}
