"""Results of reductions of CPU tensors if every rank of the group holds this rank's values.

SUM multiplies by the group's size, PRODUCT raises to its power, and BXOR gives zeros if it is even. All others (AVG, MIN, MAX, BAND,
BOR, BXOR of an odd size) change nothing.

``all_reduce`` has the result on every rank, ``reduce`` on its destination only; ``reduce_scatter`` reduces this rank's part of
its input. This covers collectives that Python calls on a group with the CPU backend gloo.
"""

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.distributed import distributed_c10d

from plimsoll.wrapping import around

_Op = distributed_c10d.ReduceOp


def _reduced(tensor: torch.Tensor, op: Any, size: int) -> torch.Tensor:
    if tensor.dtype is torch.bool:  # gloo does not accept bool
        return tensor
    if op == _Op.SUM:
        return tensor * size
    if op == _Op.PRODUCT:
        return tensor**size
    if op == _Op.BXOR and size % 2 == 0:
        return torch.zeros_like(tensor)
    return tensor


def _answer(output: torch.Tensor, mine: torch.Tensor, op: Any, size: int) -> None:
    with torch.inference_mode(output.is_inference()), torch.no_grad():
        answer = _reduced(mine, op, size)
        if answer is not output:
            output.copy_(answer.reshape(output.shape))


def _has_gloo(group: Any) -> bool:
    """True if the group's CPU backend is gloo."""
    return "cpu:gloo" in str(distributed_c10d._world.pg_backend_config.get(group, ""))


def _is_ours(group: Any, tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" and _has_gloo(group)


def _op_of(arguments: tuple[Any, ...], options: Any) -> Any:
    """The reduction: from the call's options, from an argument, or the default."""
    for value in (*arguments, *options.values()):
        value = getattr(value, "reduceOp", value)
        if isinstance(value, (_Op, _Op.RedOpType)):
            return value
    return _Op.SUM


def _all_reduce(group: Any, arguments: tuple[Any, ...], op: Any) -> None:
    tensors = arguments[0]
    for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
        if _is_ours(group, tensor):
            _answer(tensor, tensor, op, group.size())


def _reduce(group: Any, arguments: tuple[Any, ...], op: Any) -> None:
    roots = [getattr(value, "rootRank", value) for value in arguments[1:]]
    root = next((value for value in roots if isinstance(value, int)), 0)
    if group.rank() == root:
        _all_reduce(group, arguments, op)


def _reduce_scatter(group: Any, arguments: tuple[Any, ...], op: Any) -> None:
    size, rank = group.size(), group.rank()
    outputs, inputs = arguments[:2]
    for output, given in [(outputs, inputs)] if isinstance(outputs, torch.Tensor) else zip(outputs, inputs):
        if _is_ours(group, output):
            # One tensor per rank, or one tensor with the parts of all ranks.
            mine = given.reshape(-1).chunk(size)[rank] if isinstance(given, torch.Tensor) else given[rank]
            _answer(output, mine, op, size)


_ANSWERS = {
    "allreduce": _all_reduce,
    "allreduce_coalesced": _all_reduce,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "_reduce_scatter_base": _reduce_scatter,
    "reduce_scatter_single": _reduce_scatter,
    "reduce_scatter_tensor_coalesced": _reduce_scatter,
    "reduce_scatter_single_coalesced": _reduce_scatter,
}


def install() -> None:
    for name, answer in _ANSWERS.items():
        if hasattr(distributed_c10d.ProcessGroup, name):
            _answer_after(name, answer)


def _answer_after(name: str, answer: Callable[..., None]) -> None:
    @around(distributed_c10d.ProcessGroup, name)
    def call(collective: Any, group: Any, *arguments: Any, **options: Any) -> Any:
        work = collective(group, *arguments, **options)
        if arguments:
            answer(group, arguments, _op_of(arguments, options))
        return work


# -- DistributedDataParallel around a module on the CPU ----------------------------------------------------------------


class _Thread(threading.local):
    constructs = False


_thread = _Thread()


def _mean(state: Any, bucket: Any) -> "torch.futures.Future[torch.Tensor]":
    mean: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    mean.set_result(bucket.buffer())
    return mean


def change_ddp(parallel: ModuleType) -> None:
    """DDP's reducer needs the mean of the gradients, which is the content of the bucket. Its logger needs gloo's threads."""

    @around(torch.distributed.Logger, "set_construction_data_and_log")
    def note_construction(note: Any, self: Any, *args: Any, **options: Any) -> None:
        if not _thread.constructs:
            note(self, *args, **options)

    @around(parallel.DistributedDataParallel, "_ddp_init_helper")
    def init_helper(init: Any, self: Any, *args: Any, **options: Any) -> None:
        _thread.constructs = self.device_type == "cpu" and _has_gloo(self.process_group)
        try:
            init(self, *args, **options)
            if _thread.constructs:
                torch.distributed._register_comm_hook(self.reducer, None, _mean)
        finally:
            _thread.constructs = False
