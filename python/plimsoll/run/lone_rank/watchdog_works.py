"""What NCCL's works keep whose future was taken and which nobody waits for: the hooks by which DDP compresses gradients.

A work keeps the tensors of an asynchronous collective until somebody waits for it. Nobody does who takes its future instead:
then the group's watchdog, a thread that looks ten times a second, puts what completed works keep on a shelf, and the next
collective of the group clears the shelf (`workEnqueue` of `ProcessGroupNCCL.cpp`, torch 2.8 to 2.13). A step of a real job
is longer than a tenth of a second, so that what one left is gone with the first collective of the next. Here steps take
milliseconds, and the tensors of a dozen of them would be kept; of a long one, as many as the machine's speed decides.

So a reduction is waited for at once, which leaves nothing to the watchdog, and what it reduced is kept here: until the first
collective after the next forward of DDP has begun, or the first of another backward.

A gather keeps more than can be reached from here, and DDP's hooks in C++ (``_register_builtin_comm_hook``) are not seen: those
are left to the watchdog, and the next forward waits until it has looked. The machine's speed still tells there in a step of
more than a tenth of a second. Not told apart: of which group a collective is.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._C import _distributed_c10d
from torch.distributed import distributed_c10d

_COLLECTIVES = (
    "allreduce",
    "allreduce_coalesced",
    "broadcast",
    "reduce",
    "allgather",
    "_allgather_base",
    "allgather_single",
    "allgather_coalesced",
    "gather",
    "scatter",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_single",
    "alltoall",
    "alltoall_base",
    "barrier",
    "send",
    "recv",
)
# Their input is their output: who keeps the one keeps all that the work does.
_IN_PLACE = {int(getattr(getattr(_distributed_c10d, "OpType"), name)) for name in ("ALLREDUCE", "BROADCAST", "REDUCE")}


class _Shelf:
    def __init__(self) -> None:
        self._of_this_step: list[Any] = []
        self._of_earlier: list[Any] = []
        self._backward = -1  # autograd's number of the one that the works of this step were made in
        self.is_left_to_watchdog = False
        self.has_hook_in_cpp = False

    def keep(self, tensors: Any, backward: int) -> None:
        """REQUIRES: the collective that made them is the last that was called."""
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
            let_the_watchdog_look()

    def collective_was_made(self) -> None:
        self._of_earlier.clear()


_shelf = _Shelf()
forward_begins = _shelf.forward_begins
collective_was_made = _shelf.collective_was_made


def let_the_watchdog_look() -> None:
    """Waits, for up to a tenth of a second, until every group's watchdog has seen that its collectives are complete."""
    for group in list(distributed_c10d._world.pg_map):
        if "nccl" in distributed_c10d.get_backend_config(group):
            try:
                group._wait_for_pending_works()
            except RuntimeError:  # torch 2.5 cannot ask a group of several backends; nor do its works keep tensors
                pass


def _telling(collective: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(collective)
    def call(*arguments: Any, **options: Any) -> Any:
        result = collective(*arguments, **options)
        collective_was_made()
        return result

    return call


@functools.cache
def _see_collectives() -> None:
    """Once, and only in a script that leaves works: other scripts' collectives are called as they are."""
    group = distributed_c10d.ProcessGroup
    for name in _COLLECTIVES:
        if hasattr(group, name):
            setattr(group, name, _telling(getattr(group, name)))
    send_buffers = _telling(torch.distributed._broadcast_coalesced)

    @functools.wraps(send_buffers)
    def at_forward(*arguments: Any, **options: Any) -> Any:
        forward_begins()  # also one without gradients, for which DDP does not ask for new buckets
        return send_buffers(*arguments, **options)

    torch.distributed._broadcast_coalesced = at_forward


def _waiting(get_future: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(get_future)
    def call(work: Any) -> Any:
        future = get_future(work)
        if int(work._get_op_type()) not in _IN_PLACE:
            _shelf.is_left_to_watchdog = True
            return future
        backward = torch._C._current_graph_task_id()
        if backward != -1 and future.done():
            _see_collectives()
            _shelf.keep(future.value(), backward)
        work.wait()
        return future

    return call


def _noting(register: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(register)
    def call(*arguments: Any) -> Any:
        _shelf.has_hook_in_cpp = _shelf.is_left_to_watchdog = True
        return register(*arguments)

    return call


def _works_keep_tensors() -> bool:
    """Before torch 2.8 the allocator is told of the stream that uses them instead."""
    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 8)


def replacements() -> dict[str, Any]:
    if not _works_keep_tensors():
        return {}
    work = _distributed_c10d.Work
    setattr(work, "get_future", _waiting(work.get_future))
    register = "_register_builtin_comm_hook"
    return {register: _noting(getattr(_distributed_c10d, register))}
