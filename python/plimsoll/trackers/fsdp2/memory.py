"""The use of each allocation of FSDP2: wrappers that inform the native part and call the wrapped function."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as param_group
from torch.distributed.fsdp._fully_shard._fsdp_common import DDPMeshInfo
from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

from plimsoll.native import _C
from plimsoll.native import MemoryUse as Use
from plimsoll.wrapping import Wrap, wrapper


def adopt(group: Any) -> None:
    for param in group.fsdp_params:
        _C.adopt_parameter(param.sharded_param, group, False)
        whole = getattr(param, "_unsharded_param", None)
        if whole is not None:
            _C.adopt_parameter(whole, group, True)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.group: Any = None  # the parameter group for which this thread works
        self.reducing: Any = None  # the group that reduces its gradients
        self.divisions = 0  # calls of _div_if_needed in this reduction
        self.reported = False  # the result of the reduction was reported as gradients of shards
        self.allocating = False  # foreach_all_gather_copy_out is allocating whole parameters


_thread = _Thread()


def _for_use(use: Use, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls the function; its allocations for the current group have this use."""
    group = _thread.group
    if group is None:
        return function(*args, **kwargs)
    _C.use_begins(use, group, group.device)
    try:
        return function(*args, **kwargs)
    finally:
        _C.use_over()


def _for(use: Use) -> Wrap:
    return wrapper(functools.partial(_for_use, use))


@wrapper
def of_group(method: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
    """While the method of a group runs, this group is the current one."""
    outer, _thread.group = _thread.group, group
    try:
        return method(group, *args, **kwargs)
    finally:
        _thread.group = outer


class _Allocating:
    """A communicator that reports its allocations: the first use for the first allocation, and so on."""

    def __init__(self, comm: Any, *uses: Use) -> None:
        self._comm = comm
        self._uses = list(uses)

    def allocate(self, *args: Any, **kwargs: Any) -> Any:
        use = self._uses.pop(0) if len(self._uses) > 1 else self._uses[0]
        return _for_use(use, self._comm.allocate, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._comm(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)


@wrapper
def _foreach_all_gather(function: Any, *args: Any) -> Any:
    return function(*args[:-1], _Allocating(args[-1], Use.ALL_GATHER_OUTPUT))


@wrapper
def _foreach_all_gather_copy_out(function: Any, *args: Any) -> Any:
    """It allocates all whole parameters and then copies, so one use covers all allocations before the copy."""
    group = _thread.group
    if group is None:
        return function(*args)
    _C.use_begins(Use.UNSHARDED_PARAM, group, group.device)
    _thread.allocating = True
    try:
        return function(*args)
    finally:
        _end_allocating()


def _end_allocating() -> None:
    if _thread.allocating:
        _thread.allocating = False
        _C.use_over()


class _Torch:
    """Replaces `torch` in the module of FSDP2's collectives. Two functions of torch allocate there for uses without a function of
    FSDP2: copies along another dimension than the first, and gradients along one. Access to `torch.ops` ends the allocations."""

    @property
    def ops(self) -> Any:
        _end_allocating()
        return torch.ops

    def __init__(self) -> None:
        self.__dict__.update({name: value for name, value in vars(torch).items() if name not in ("ops", "cat")})
        self.empty_like = _for(Use.ALL_GATHER_COPY_OUT)(torch.empty_like)
        self._laid_out = _for(Use.UNSHARDED_GRAD)(torch.cat)

    def cat(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return torch.cat(*args, **kwargs) if "out" in kwargs else self._laid_out(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


_REDUCE_SCATTER_COMM = 4  # of foreach_reduce's arguments


@wrapper
def _foreach_reduce(function: Any, *args: Any) -> Any:
    group = _thread.group
    outer, _thread.reducing = _thread.reducing, group
    _thread.reported, _thread.divisions = False, 0
    comm = _Allocating(args[_REDUCE_SCATTER_COMM], Use.REDUCE_SCATTER_INPUT, Use.REDUCE_SCATTER_OUTPUT)
    try:
        result = function(*args[:_REDUCE_SCATTER_COMM], comm, *args[_REDUCE_SCATTER_COMM + 1 :])
    finally:
        _thread.reducing = outer
    partial = result[-1]
    if partial is not None and group is not None:
        _C.tell_memory(Use.PARTIAL_GRAD, partial, group)
    return result


@wrapper
def _div_if_needed(function: Any, tensor: torch.Tensor, factor: float | None) -> None:
    """foreach_reduce calls it twice: with the input of the reduction, and with the result, which replicas all-reduce."""
    group = _thread.reducing
    if group is not None:
        _thread.divisions += 1
        if _thread.divisions == 2 and isinstance(group.mesh_info, DDPMeshInfo):
            _C.tell_memory(Use.ALL_REDUCE, tensor, group)
    function(tensor, factor)


@wrapper
def _to_sharded_dtensor(function: Any, param: Any, tensor: torch.Tensor) -> Any:
    # On the device, the gradients of a group are parts of one tensor, so one report covers all.
    if _thread.reducing is not None and (param.offload_to_cpu or not _thread.reported):
        _thread.reported = True
        _C.tell_memory(Use.SHARDED_GRAD, tensor, _thread.reducing)
    return function(param, tensor)


@wrapper
def _to_accumulated_grad(function: Any, param: Any) -> None:
    _for_use(Use.ACCUMULATED_GRAD, function, param)
    whole = getattr(param, "_unsharded_param", None)
    if _thread.group is not None and whole is not None and whole.grad is not None:
        _C.tell_memory(Use.ACCUMULATED_GRAD, whole.grad, _thread.group)


@wrapper
def _init_all_gather_outputs(function: Any, param: Any, *args: Any) -> None:
    if param.all_gather_outputs:
        function(param, *args)
    else:
        _for_use(Use.UNSHARDED_PARAM, function, param, *args)


@wrapper
def _init_unsharded_param(function: Any, param: Any) -> None:
    if hasattr(param, "_unsharded_param") and not hasattr(param, "_extensions_data"):
        return function(param)  # The function does nothing.
    _for_use(Use.UNSHARDED_PARAM, function, param)
    if _thread.group is not None:
        _C.adopt_parameter(param._unsharded_param, _thread.group, True)


@wrapper
def _lazy_init(function: Any, group: Any) -> None:
    """The memory of shards may have changed since fully_shard: to_empty, load_state_dict."""
    function(group)
    adopt(group)
    for param in group.fsdp_params:
        _C.tell_memory(Use.SHARDED_PARAM, param._sharded_param_data, group)


def _property_for(use: Use) -> Wrap:
    return lambda held: property(_for(use)(held.fget))


# Owner of the function, its name, and its wrapper.
FUNCTIONS: list[tuple[Any, str, Wrap]] = [
    (FSDPParamGroup, "unshard", of_group),
    (FSDPParamGroup, "wait_for_unshard", of_group),
    (FSDPParamGroup, "_to_sharded_post_forward", of_group),
    (FSDPParamGroup, "lazy_init", _lazy_init),
    (FSDPParam, "init_unsharded_param", _init_unsharded_param),
    (FSDPParam, "to_sharded_post_forward", _for(Use.POST_FORWARD_SHARD)),
    (FSDPParam, "to_accumulated_grad_if_needed", _to_accumulated_grad),
    (FSDPParam, "to_sharded_dtensor", _to_sharded_dtensor),
    (param_group, "foreach_all_gather", _foreach_all_gather),
    (param_group, "foreach_all_gather_copy_out", _foreach_all_gather_copy_out),
    (param_group, "foreach_reduce", _foreach_reduce),
    (param_group, "alloc_storage", _for(Use.UNSHARDED_PARAM)),
    (FSDPParam, "init_all_gather_outputs", _init_all_gather_outputs),
    (collectives, "_get_param_all_gather_inputs", _for(Use.ALL_GATHER_INPUT)),
    (collectives, "_to_dtype_if_needed", _for(Use.REDUCE_SCATTER_OUTPUT)),
    (collectives, "_div_if_needed", _div_if_needed),
    (collectives, "torch", lambda _: _Torch()),
    (FSDPParam, "all_gather_inputs", _property_for(Use.ALL_GATHER_INPUT)),
    (FSDPParam, "unsharded_zero_grad_data", _property_for(Use.UNSHARDED_GRAD)),
]
