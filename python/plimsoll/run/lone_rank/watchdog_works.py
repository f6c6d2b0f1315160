"""Tensors of NCCL works that code uses by their future, without a wait: DDP's hooks that compress gradients.

A work keeps the tensors of an asynchronous collective until a wait for it. Without a wait, the group's watchdog moves them to a
shelf, ten times a second, and the group's next collective clears the shelf (`workEnqueue` of `ProcessGroupNCCL.cpp`, torch 2.8 to
2.13). So the first collective of a real job's next step frees them. Steps on the pretend GPU take milliseconds: the tensors of a
dozen steps would stay, and their number would depend on the machine's speed.

So this module waits for a reduction at once, which leaves no work to the watchdog. It holds the reduced tensors until the first
collective after the next forward of DDP, or until the first collective of another backward.

Tensors of a gather and of DDP's hooks in C++ (``_register_builtin_comm_hook``) are not visible. They stay with the watchdog, and the
next forward waits for it. The groups of collectives are not distinguished.
"""

import functools
from typing import Any

import torch
from torch._C import _distributed_c10d
from torch.distributed import distributed_c10d

from plimsoll.wrapping import around, replace, wrapper

_COLLECTIVES = (
    "allreduce allreduce_coalesced broadcast reduce allgather _allgather_base allgather_single allgather_coalesced gather"
    " scatter reduce_scatter _reduce_scatter_base reduce_scatter_single alltoall alltoall_base barrier send recv"
).split()
# Their input is their output, so the output has all tensors of the work.
_IN_PLACE = {int(getattr(getattr(_distributed_c10d, "OpType"), name)) for name in ("ALLREDUCE", "BROADCAST", "REDUCE")}


class _Shelf:
    def __init__(self) -> None:
        self._of_this_step: list[Any] = []
        self._of_earlier: list[Any] = []
        self._backward = -1  # autograd's number of the backward pass of this step's works
        self.is_left_to_watchdog = False
        self.has_hook_in_cpp = False

    def keep(self, tensors: Any, backward: int) -> None:
        """REQUIRES: the tensors belong to the last collective."""
        if backward != self._backward:
            self._of_this_step.clear()
            self._of_earlier.clear()
            self._backward = backward
        self._of_this_step.append(tensors)

    def forward_begins(self) -> None:
        self._of_earlier += self._of_this_step
        self._of_this_step = []
        if self.is_left_to_watchdog:
            self.is_left_to_watchdog = self.has_hook_in_cpp
            wait_for_watchdogs()

    def collective_was_made(self) -> None:
        self._of_earlier.clear()


_shelf = _Shelf()
forward_begins = _shelf.forward_begins
collective_was_made = _shelf.collective_was_made


def wait_for_watchdogs() -> None:
    """Waits up to a tenth of a second, until the watchdog of every group has seen that its collectives are complete."""
    for group in list(distributed_c10d._world.pg_map):
        if "nccl" in distributed_c10d.get_backend_config(group):
            try:
                group._wait_for_pending_works()
            except RuntimeError:  # torch 2.5: a group with several backends. Its works do not keep tensors.
                pass


@wrapper
def _then_note(collective: Any, *arguments: Any, **options: Any) -> Any:
    result = collective(*arguments, **options)
    collective_was_made()
    return result


@functools.cache
def _wrap_collectives() -> None:
    """Wraps the collectives, only in a script that uses a work's future."""
    group = distributed_c10d.ProcessGroup
    for name in _COLLECTIVES:
        if hasattr(group, name):
            replace(group, name, _then_note)

    @around(torch.distributed, "_broadcast_coalesced")
    def at_forward(send_buffers: Any, *arguments: Any, **options: Any) -> Any:
        forward_begins()  # also a forward without gradients, in which DDP does not rebuild buckets
        result = send_buffers(*arguments, **options)
        collective_was_made()
        return result


@wrapper
def _waiting(get_future: Any, work: Any) -> Any:
    future = get_future(work)
    if int(work._get_op_type()) not in _IN_PLACE:
        _shelf.is_left_to_watchdog = True
        return future
    backward = torch._C._current_graph_task_id()
    if backward != -1 and future.done():
        _wrap_collectives()
        _shelf.keep(future.value(), backward)
    work.wait()
    return future


@wrapper
def _note_cpp_hook(register: Any, *arguments: Any) -> Any:
    _shelf.has_hook_in_cpp = _shelf.is_left_to_watchdog = True
    return register(*arguments)


def _works_keep_tensors() -> bool:
    """False before torch 2.8, which records the stream in the allocator instead."""
    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 8)


def replacements() -> dict[str, Any]:
    if not _works_keep_tensors():
        return {}
    replace(_distributed_c10d.Work, "get_future", _waiting)
    register = "_register_builtin_comm_hook"
    return {register: _note_cpp_hook(getattr(_distributed_c10d, register))}
