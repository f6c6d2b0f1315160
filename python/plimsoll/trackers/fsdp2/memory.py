"""What FSDP2 allocates, and for which use: functions that tell, and call the one in whose place they stand."""

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
        self.group: Any = None  # whose work this thread does
        self.reducing: Any = None  # the group whose gradients are being reduced
        self.divisions = 0  # of what they are reduced from and to
        self.told = False  # what they are reduced to is known to be gradients of shards
        self.allocating = False  # foreach_all_gather_copy_out makes memory for whole parameters


_thread = _Thread()


def _for_use(use: Use, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What it allocates for the group at work is for that use."""
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
    def tell(*args: Any, **kwargs: Any) -> Any:
        return _for_use(use, function, *args, **kwargs)

    return tell


def of_group(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a group: while it runs, the group's work is done."""

    @functools.wraps(function)
    def tell(group: Any, *args: Any, **kwargs: Any) -> Any:
        outer, _thread.group = _thread.group, group
        try:
            return function(group, *args, **kwargs)
        finally:
            _thread.group = outer

    return tell


class _Allocating:
    """A communicator that tells what it allocates, one use after the other."""

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
    def tell(*args: Any) -> Any:
        return function(*args[:-1], _Allocating(args[-1], Use.ALL_GATHER_OUTPUT))

    return tell


def _foreach_all_gather_copy_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """It makes memory for whole parameters, one after the other, and then copies: until then the use is told once for all."""

    @functools.wraps(function)
    def tell(*args: Any) -> Any:
        group = _thread.group
        if group is None:
            return function(*args)
        _C.use_begins(Use.UNSHARDED_PARAM, group, group.device)
        _thread.allocating = True
        try:
            return function(*args)
        finally:
            _end_allocating()

    return tell


def _end_allocating() -> None:
    if _thread.allocating:
        _thread.allocating = False
        _C.use_over()


class _Torch:
    """torch, as the module of FSDP2's collectives sees it: two of its functions allocate there for a use that no function of FSDP2
    stands for, and its operators do what comes after allocating. What is copied out along another dimension than the first is laid
    out aside, and so are such gradients."""

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
    def tell(*args: Any) -> Any:
        group = _thread.group
        outer, _thread.reducing = _thread.reducing, group
        _thread.told, _thread.divisions = False, 0
        comm = _Allocating(args[_REDUCE_SCATTER_COMM], Use.REDUCE_SCATTER_INPUT, Use.REDUCE_SCATTER_OUTPUT)
        try:
            result = function(*args[:_REDUCE_SCATTER_COMM], comm, *args[_REDUCE_SCATTER_COMM + 1 :])
        finally:
            _thread.reducing = outer
        partial = result[-1]
        if partial is not None and group is not None:
            _C.tell_memory(Use.PARTIAL_GRAD, partial, group)
        return result

    return tell


def _div_if_needed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Called twice by foreach_reduce: with what is reduced from, and with what was reduced, among replicas too."""

    @functools.wraps(function)
    def tell(tensor: torch.Tensor, factor: float | None) -> None:
        group = _thread.reducing
        if group is not None:
            _thread.divisions += 1
            if _thread.divisions == 2 and isinstance(group.mesh_info, DDPMeshInfo):
                _C.tell_memory(Use.ALL_REDUCE, tensor, group)
        function(tensor, factor)

    return tell


def _to_sharded_dtensor(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def tell(param: Any, tensor: torch.Tensor) -> Any:
        # On the device the gradients of a group are parts of one tensor: one is told for all.
        if _thread.reducing is not None and (param.offload_to_cpu or not _thread.told):
            _thread.told = True
            _C.tell_memory(Use.SHARDED_GRAD, tensor, _thread.reducing)
        return function(param, tensor)

    return tell


def _to_accumulated_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _scoped(function, Use.ACCUMULATED_GRAD)

    @functools.wraps(function)
    def tell(param: Any) -> None:
        run(param)
        whole = getattr(param, "_unsharded_param", None)
        if _thread.group is not None and whole is not None and whole.grad is not None:
            _C.tell_memory(Use.ACCUMULATED_GRAD, whole.grad, _thread.group)

    return tell


def _init_all_gather_outputs(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _scoped(function, Use.UNSHARDED_PARAM)

    @functools.wraps(function)
    def tell(param: Any, *args: Any) -> None:
        return function(param, *args) if param.all_gather_outputs else run(param, *args)

    return tell


def _init_unsharded_param(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _scoped(function, Use.UNSHARDED_PARAM)

    @functools.wraps(function)
    def tell(param: Any) -> None:
        if hasattr(param, "_unsharded_param") and not hasattr(param, "_extensions_data"):
            return function(param)  # It has nothing to do.
        run(param)
        if _thread.group is not None:
            _C.adopt_parameter(param._unsharded_param, _thread.group, True)

    return tell


def _lazy_init(function: Callable[..., Any]) -> Callable[..., Any]:
    """Shards may have got other memory since fully_shard: to_empty, load_state_dict."""

    @functools.wraps(function)
    def tell(group: Any) -> None:
        function(group)
        adopt(group)
        for param in group.fsdp_params:
            _C.tell_memory(Use.SHARDED_PARAM, param._sharded_param_data, group)

    return tell


def _for(use: Use) -> Wrap:
    return lambda function: _scoped(function, use)


# Whose function, its name, and what stands in its place.
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
