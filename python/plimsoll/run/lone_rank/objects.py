"""torch's object collectives for a lone rank.

An object travels as bytes on the device and would come back as zeros. These functions send tensors of the same sizes through
the same collectives as torch (`distributed_c10d.py`, torch 2.13), and take the objects from this process:

- ``all_gather_object``, ``gather_object``: every slot gets a copy of this rank's object;
- ``broadcast_object_list``: the list stays unchanged, also on a rank that is not the source;
- ``scatter_object_list``: the source gets its own part. Another rank gets the first object of its own input list; without
  such a list, its output list stays unchanged;
- ``send_object_list`` is torch's own; ``recv_object_list``: the list stays unchanged.

If the objects of the peers are known, `peers_have` gives them to ``all_gather_object`` and ``broadcast_object_list``.
"""

import contextlib
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d


class _Peers(threading.local):
    gathered: Callable[[Any], list[Any]] | None = None
    broadcast: list[Any] | None = None


_peers = _Peers()


@contextlib.contextmanager
def peers_have(
    gathered: Callable[[Any], list[Any]] | None = None, broadcast: list[Any] | None = None
) -> Iterator[None]:
    """In this thread, a gather returns ``gathered(this rank's object)``, one object per rank of the group, and a broadcast from
    another rank returns `broadcast`."""
    before = _peers.gathered, _peers.broadcast
    _peers.gathered, _peers.broadcast = gathered, broadcast
    try:
        yield
    finally:
        _peers.gathered, _peers.broadcast = before


def _device_for_objects(group: Any) -> Any:
    choose = getattr(c10d, "_get_object_coll_device", None) or c10d._get_pg_default_device
    return choose(group)


def _rank_in(group: Any, global_rank: int | None, group_rank: int | None) -> int:
    """The rank in `group` for a pair of arguments such as (src, group_src); by default that of global rank 0."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group rank and global rank")
        return group_rank
    return c10d.get_group_rank(group, 0 if global_rank is None else global_rank)


def _is_outside(group: Any, name: str) -> bool:
    if not c10d._rank_not_in_group(group):
        return False
    c10d._warn_not_in_group(name)
    return True


def _copy(obj: Any) -> Any:
    return pickle.loads(pickle.dumps(obj))


def _exchange_sizes(local_size: torch.Tensor, group: Any, size: int, device: Any) -> None:
    sizes = torch.zeros(size, dtype=torch.long, device=device)
    c10d.all_gather([sizes[i].unsqueeze(dim=0) for i in range(size)], local_size, group=group)


def _slots(bytes_each: int, size: int, device: Any) -> list[torch.Tensor]:
    whole = torch.empty(bytes_each * size, dtype=torch.uint8, device=device)
    return [whole[bytes_each * i : bytes_each * (i + 1)] for i in range(size)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    if _is_outside(group, "all_gather_object"):
        return
    device, size = _device_for_objects(group), c10d.get_world_size(group)
    payload, local_size = c10d._object_to_tensor(obj, device, group)
    _exchange_sizes(local_size, group, size, device)
    if _peers.gathered is None:
        objects = [_copy(obj) for _ in range(size)]
    else:
        objects = _peers.gathered(obj)
        # padded to the largest object
        payload.resize_(max(payload.numel(), *(len(pickle.dumps(each)) for each in objects)))
    c10d.all_gather(_slots(payload.numel(), size, device), payload, group=group)
    object_list[:size] = objects


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    if _is_outside(group, "gather_object"):
        return
    group = group or c10d._get_default_group()
    root = _rank_in(group, dst, group_dst)
    gathers = group.rank() == root
    c10d._validate_output_list_for_rank(group.rank(), root, object_gather_list)
    device, size = _device_for_objects(group), group.size()
    payload, local_size = c10d._object_to_tensor(obj, device, group)
    _exchange_sizes(local_size, group, size, device)
    slots = _slots(payload.numel(), size, device) if gathers else None
    c10d.gather(payload, gather_list=slots, dst=c10d.get_global_rank(group, root), group=group)
    if gathers and object_gather_list is not None:
        for i in range(size):
            object_gather_list[i] = _copy(obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    if _is_outside(group, "broadcast_object_list"):
        return
    group = group or c10d._get_default_group()
    root = _rank_in(group, src, group_src)
    device = device or _device_for_objects(group)
    if _peers.broadcast is not None and group.rank() != root:
        object_list[:] = _peers.broadcast
    # A receiving rank allocates the size of its own objects: the peers hold the same.
    sent = [c10d._object_to_tensor(obj, device, group) for obj in object_list]
    payloads = [payload for payload, _ in sent]
    if group.rank() == root:
        sizes = torch.cat([size for _, size in sent])
        payload = payloads[0] if len(payloads) == 1 else torch.cat(payloads)
    else:
        total = sum(p.numel() for p in payloads)
        del sent, payloads
        sizes = torch.empty(len(object_list), dtype=torch.long, device=device)
        payload = torch.empty(total, dtype=torch.uint8, device=device)
    source = c10d.get_global_rank(group, root)
    c10d.broadcast(sizes, src=source, group=group)
    c10d.broadcast(payload, src=source, group=group)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    if _is_outside(group, "scatter_object_list"):
        return
    group = group or c10d._get_default_group()
    root = _rank_in(group, src, group_src)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    device, rank, source = _device_for_objects(group), group.rank(), c10d.get_global_rank(group, root)
    payloads = sizes = None
    if rank == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        sent = [c10d._object_to_tensor(obj, device, group) for obj in scatter_object_input_list]
        payloads, sizes = [payload for payload, _ in sent], [size for _, size in sent]
        largest = max(payload.numel() for payload in payloads)
        for payload in payloads:
            payload.resize_(largest)
    else:
        largest = 0
    c10d.broadcast(torch.tensor([largest], dtype=torch.long, device=device), src=source, group=group)
    part = torch.empty(largest, dtype=torch.uint8, device=device)
    c10d.scatter(part, scatter_list=payloads, src=source, group=group)
    size = torch.tensor([0], dtype=torch.long, device=device)
    c10d.scatter(size, scatter_list=sizes, src=source, group=group)
    if scatter_object_input_list:
        mine = scatter_object_input_list[rank if rank == root else 0]
        scatter_object_output_list[0] = _copy(mine)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    if _is_outside(group, "recv_object_list"):
        return -1
    group = group or c10d._get_default_group()
    # A receive from any rank is one from the next rank.
    named = src is not None or group_src is not None
    root = _rank_in(group, src, group_src) if named else (group.rank() + 1) % group.size()
    device, source = device or _device_for_objects(group), c10d.get_global_rank(group, root)
    sizes = torch.empty(len(object_list), dtype=torch.long, device=device)
    payload_bytes = sum(len(pickle.dumps(obj)) for obj in object_list)
    for tensor in (sizes, torch.empty(payload_bytes, dtype=torch.uint8, device=device)):
        if use_batch:
            c10d.batch_isend_irecv([c10d.P2POp(c10d.irecv, tensor, source, group)])[0].wait()
        else:
            c10d.recv(tensor, src=source, group=group)
    return source


def replacements() -> dict[str, Any]:
    functions = (all_gather_object, gather_object, broadcast_object_list, scatter_object_list, recv_object_list)
    return {function.__name__: function for function in functions}
