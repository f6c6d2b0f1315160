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

Wrap = Callable[[Any], Any]


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


def _scoped(function: Callable[..., Any], use: Use) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _for_use(use, function, *args, **kwargs)

    return wrapper


def of_group(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method of a group: while it runs, this group is the current one."""

    @functools.wraps(function)
    def wrapper(group: Any, *args: Any, **kwargs: Any) -> Any:
        outer, _thread.group = _thread.group, group
        try:
            return function(group, *args, **kwargs)
        finally:
            _thread.group = outer

    return wrapper


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


def _foreach_all_gather(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args[:-1], _Allocating(args[-1], Use.ALL_GATHER_OUTPUT))

    return wrapper


def _foreach_all_gather_copy_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """It allocates all whole parameters and then copies, so one use covers all allocations before the copy."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        group = _thread.group
        if group is None:
            return function(*args)
        _C.use_begins(Use.UNSHARDED_PARAM, group, group.device)
        _thread.allocating = True
        try:
            return function(*args)
        finally:
            _end_allocating()

    return wrapper


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
        self.empty_like = _scoped(torch.empty_like, Use.ALL_GATHER_COPY_OUT)
        self._laid_out = _scoped(torch.cat, Use.UNSHARDED_GRAD)

    def cat(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return torch.cat(*args, **kwargs) if "out" in kwargs else self._laid_out(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


_REDUCE_SCATTER_COMM = 4  # of foreach_reduce's arguments


def _foreach_reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
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

    return wrapper


def _div_if_needed(function: Callable[..., Any]) -> Callable[..., Any]:
    """foreach_reduce calls it twice: with the input of the reduction, and with the result, which replicas all-reduce."""

    @functools.wraps(function)
    def wrapper(tensor: torch.Tensor, factor: float | None) -> None:
        group = _thread.reducing
        if group is not None:
            _thread.divisions += 1
            if _thread.divisions == 2 and isinstance(group.mesh_info, DDPMeshInfo):
                _C.tell_memory(Use.ALL_REDUCE, tensor, group)
        function(tensor, factor)

    return wrapper


def _to_sharded_dtensor(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(param: Any, tensor: torch.Tensor) -> Any:
        # On the device, the gradients of a group are parts of one tensor, so one report covers all.
        if _thread.reducing is not None and (param.offload_to_cpu or not _thread.reported):
            _thread.reported = True
            _C.tell_memory(Use.SHARDED_GRAD, tensor, _thread.reducing)
        return function(param, tensor)

    return wrapper


def _to_accumulated_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _scoped(function, Use.ACCUMULATED_GRAD)

    @functools.wraps(function)
    def wrapper(param: Any) -> None:
        run(param)
        whole = getattr(param, "_unsharded_param", None)
        if _thread.group is not None and whole is not None and whole.grad is not None:
            _C.tell_memory(Use.ACCUMULATED_GRAD, whole.grad, _thread.group)

    return wrapper


def _init_all_gather_outputs(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _scoped(function, Use.UNSHARDED_PARAM)

    @functools.wraps(function)
    def wrapper(param: Any, *args: Any) -> None:
        return function(param, *args) if param.all_gather_outputs else run(param, *args)

    return wrapper


def _init_unsharded_param(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _scoped(function, Use.UNSHARDED_PARAM)

    @functools.wraps(function)
    def wrapper(param: Any) -> None:
        if hasattr(param, "_unsharded_param") and not hasattr(param, "_extensions_data"):
            return function(param)  # The function does nothing.
        run(param)
        if _thread.group is not None:
            _C.adopt_parameter(param._unsharded_param, _thread.group, True)

    return wrapper


def _lazy_init(function: Callable[..., Any]) -> Callable[..., Any]:
    """The memory of shards may have changed since fully_shard: to_empty, load_state_dict."""

    @functools.wraps(function)
    def wrapper(group: Any) -> None:
        function(group)
        adopt(group)
        for param in group.fsdp_params:
            _C.tell_memory(Use.SHARDED_PARAM, param._sharded_param_data, group)

    return wrapper


def _for(use: Use) -> Wrap:
    return lambda function: _scoped(function, use)


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
]
PROPERTIES: list[tuple[Any, str, Wrap]] = [
    (FSDPParam, "all_gather_inputs", _for(Use.ALL_GATHER_INPUT)),
    (FSDPParam, "unsharded_zero_grad_data", _for(Use.UNSHARDED_GRAD)),
]
