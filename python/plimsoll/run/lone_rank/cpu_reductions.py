"""Results of reductions of CPU tensors if every rank of the group holds this rank's values.

=====================  =================================================================================================
SUM                    times the group's size
PRODUCT                to the power of the group's size
AVG, MIN, MAX          the same
BAND, BOR              the same
BXOR                   the same if the group's size is odd, else zeros
=====================  =================================================================================================

``all_reduce`` has the result on every rank, ``reduce`` on its destination only; ``reduce_scatter`` reduces this rank's part of
its input. This covers collectives that Python calls on a group with the CPU backend gloo.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import distributed_c10d

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


def has_gloo(group: Any) -> bool:
    """True if the group's CPU backend is gloo."""
    return "cpu:gloo" in str(distributed_c10d._world.pg_backend_config.get(group, ""))


def _is_ours(group: Any, tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" and has_gloo(group)


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


def _then(collective: Callable[..., Any], answer: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(collective)
    def call(group: Any, *arguments: Any, **options: Any) -> Any:
        work = collective(group, *arguments, **options)
        if arguments:
            answer(group, arguments, _op_of(arguments, options))
        return work

    return call


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
    group = distributed_c10d.ProcessGroup
    for name, answer in _ANSWERS.items():
        if hasattr(group, name):
            setattr(group, name, _then(getattr(group, name), answer))
