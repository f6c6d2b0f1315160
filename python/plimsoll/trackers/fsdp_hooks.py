"""How torch's FSDP2 is seen. Around each of its allocations, and at each of its stages, the native part is told what the
memory is for and of which group: the same places at which plimsoll's own FSDP2 (src/plimsoll/fsdp) tells it.

Functions of FSDP2 are replaced by ones that tell and call them, while a tracker is entered, and put back after. Forward hooks
of FSDP modules were registered by fully_shard as bound methods, and are exchanged in their place in the module's own lists.

[Note: stages of forward] A state's forward hooks do its pre-forward and its post-forward. Of modules that were sharded together
each has them, and the last of them to run ends the state's forward.
"""

import functools
import threading
from enum import IntEnum
from typing import Any, Callable, Iterator, List, Optional, Tuple

import torch
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as param_group
from torch.distributed.fsdp._fully_shard._fsdp_common import DDPMeshInfo, TrainingState
from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

from plimsoll.native import _C


class Use(IntEnum):
    """plimsoll::fsdp::MemoryUse."""

    SHARDED_PARAM = 0
    UNSHARDED_PARAM = 1
    ALL_GATHER_INPUT = 2
    ALL_GATHER_OUTPUT = 3
    ALL_GATHER_COPY_OUT = 4
    POST_FORWARD_SHARD = 5
    UNSHARDED_GRAD = 6
    ACCUMULATED_GRAD = 7
    REDUCE_SCATTER_INPUT = 8
    REDUCE_SCATTER_OUTPUT = 9
    ALL_REDUCE = 10
    PARTIAL_GRAD = 11
    SHARDED_GRAD = 12


class Stage(IntEnum):
    """plimsoll::fsdp::Stage."""

    BEFORE_PRE_FORWARD = 0
    AFTER_PRE_FORWARD = 1
    BEFORE_POST_FORWARD = 2
    AFTER_POST_FORWARD = 3
    BEFORE_PRE_BACKWARD = 4
    AFTER_PRE_BACKWARD = 5
    BEFORE_POST_BACKWARD = 6
    AFTER_POST_BACKWARD = 7
    UNSHARD_BY_HAND = 8


# Called with a state and its module where a forward begins.
on_forward: Optional[Callable[[Any, torch.nn.Module], None]] = None


# -- what there is: asked by the native part ---------------------------------------------------------------------------------


def state_of(module: torch.nn.Module) -> Optional[Tuple[Any, List[torch.nn.Module], List[Any]]]:
    if not isinstance(module, FSDPModule):
        return None
    state = module._get_fsdp_state()
    patches.exchange_hooks(state)
    for group in state._fsdp_param_groups:
        _adopt(group)
    return state, list(state._modules), list(state._fsdp_param_groups)


def device_of(root: torch.nn.Module) -> torch.device:
    if not isinstance(root, FSDPModule):
        raise AssertionError(
            f"FSDPMemTracker follows a model under fully_shard, and fully_shard was not applied to this "
            f"{type(root).__name__}. Apply it to the root as well, after its submodules; without FSDP use MemTracker."
        )
    return root._get_fsdp_state()._device


def held_by(group: Any) -> List[Tuple[int, torch.Tensor]]:
    return [(int(use), tensor) for use, tensor in _held_by(group) if tensor is not None]


def _held_by(group: Any) -> Iterator[Tuple[Use, Optional[torch.Tensor]]]:
    in_backward = group._training_state in (TrainingState.PRE_BACKWARD, TrainingState.POST_BACKWARD)
    for param in group.fsdp_params:
        yield Use.SHARDED_PARAM, param._sharded_param_data
        yield Use.SHARDED_PARAM, param.sharded_param
        yield Use.SHARDED_GRAD, param.sharded_param.grad
        for output in param.all_gather_outputs:
            yield Use.UNSHARDED_PARAM, output
        yield Use.POST_FORWARD_SHARD, getattr(param, "_sharded_post_forward_param_data", None)
        whole = getattr(param, "_unsharded_param", None)
        yield Use.UNSHARDED_GRAD if in_backward else Use.ACCUMULATED_GRAD, whole.grad if whole is not None else None
        yield Use.ACCUMULATED_GRAD, param.unsharded_accumulated_grad
    if group._all_gather_result is not None:
        yield Use.ALL_GATHER_OUTPUT, group._all_gather_result.all_gather_output
    yield Use.PARTIAL_GRAD, group._partial_reduce_output
    state = group._all_reduce_state
    # Where it is a gradient as well, it is named as one.
    if state is not None and state.all_reduce_input.dtype != getattr(group, "_orig_dtype", None):
        yield Use.ALL_REDUCE, state.all_reduce_input


def whole_parameters_of(group: Any) -> List[torch.Tensor]:
    return [param.unsharded_param for param in group.fsdp_params] if group.is_unsharded else []


def _adopt(group: Any) -> None:
    for param in group.fsdp_params:
        _C.adopt_parameter(param.sharded_param, group, False)
        whole = getattr(param, "_unsharded_param", None)
        if whole is not None:
            _C.adopt_parameter(whole, group, True)


# -- what it does ------------------------------------------------------------------------------------------------------------


class _Thread(threading.local):
    def __init__(self) -> None:
        self.group: Any = None  # whose work this thread does
        self.reducing: Any = None  # the group whose gradients are being reduced
        self.divisions = 0  # of what they are reduced from and to
        self.told = False  # what they are reduced to is known to be gradients of shards
        self.allocating = False  # foreach_all_gather_copy_out makes memory for whole parameters


_thread = _Thread()


def _scoped(function: Callable[..., Any], use: Use) -> Callable[..., Any]:
    """What it allocates for the group at work is for that use."""

    @functools.wraps(function)
    def tell(*args: Any, **kwargs: Any) -> Any:
        group = _thread.group
        if group is None:
            return function(*args, **kwargs)
        _C.use_begins(use, group, group.device)
        try:
            return function(*args, **kwargs)
        finally:
            _C.use_over()

    return tell


def _of_group(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a group: while it runs, the group's work is done."""

    @functools.wraps(function)
    def tell(group: Any, *args: Any, **kwargs: Any) -> Any:
        outer, _thread.group = _thread.group, group
        try:
            return function(group, *args, **kwargs)
        finally:
            _thread.group = outer

    return tell


def _pre_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def tell(group: Any, *args: Any, **kwargs: Any) -> Any:
        _C.tell_group(Stage.BEFORE_PRE_BACKWARD, group)
        result = function(group, *args, **kwargs)
        _C.tell_group(Stage.AFTER_PRE_BACKWARD, group)
        return result

    return tell


def _post_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    run = _of_group(function)

    @functools.wraps(function)
    def tell(group: Any, *args: Any, **kwargs: Any) -> Any:
        for param in group.fsdp_params:
            whole = getattr(param, "_unsharded_param", None)
            if whole is not None and whole.grad is not None:
                _C.tell_memory(Use.UNSHARDED_GRAD, whole.grad, group)
        _C.tell_group(Stage.BEFORE_POST_BACKWARD, group)
        result = run(group, *args, **kwargs)
        _C.tell_group(Stage.AFTER_POST_BACKWARD, group)
        return result

    return tell


class _Allocating:
    """A communicator that tells what it allocates, one use after the other."""

    def __init__(self, comm: Any, *uses: Use) -> None:
        self._comm = comm
        self._uses = list(uses)

    def allocate(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        use = self._uses.pop(0) if len(self._uses) > 1 else self._uses[0]
        return _scoped(self._comm.allocate, use)(*args, **kwargs)

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
    def tell(tensor: torch.Tensor, factor: Optional[float]) -> None:
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
        _adopt(group)
        for param in group.fsdp_params:
            _C.tell_memory(Use.SHARDED_PARAM, param._sharded_param_data, group)

    return tell


def _unshard_by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def tell(module: Any, *args: Any, **kwargs: Any) -> Any:
        for group in module._get_fsdp_state()._fsdp_param_groups:
            _C.tell_group(Stage.UNSHARD_BY_HAND, group)
        return function(module, *args, **kwargs)

    return tell


# -- forward: see [Note: stages of forward] ----------------------------------------------------------------------------------


_ORIGINAL = "_plimsoll_original"  # of a hook of ours: the one that it stands for


def _around_pre_forward(state: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def tell(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if on_forward is not None:
            on_forward(state, module)
        _C.tell_state(Stage.BEFORE_PRE_FORWARD, state)
        result = hook(module, *args, **kwargs)
        _C.tell_state(Stage.AFTER_PRE_FORWARD, state)
        return result

    return _uncompiled(tell)


def _around_post_forward(state: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def tell(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if len(state._modules) > 1 and state._modules_to_run_forward != {module}:
            return hook(module, *args, **kwargs)  # Others of the group are still to run.
        _C.tell_state(Stage.BEFORE_POST_FORWARD, state)
        result = hook(module, *args, **kwargs)
        _C.tell_state(Stage.AFTER_POST_FORWARD, state)
        return result

    return _uncompiled(tell)


def _uncompiled(hook: Callable[..., Any]) -> Callable[..., Any]:
    """As FSDP2's own hooks are: torch.compile does not look into them."""
    disabled: Callable[..., Any] = torch._dynamo.disable(hook, recursive=True, reason="skipping FSDP hooks")
    return disabled


def _state_init(function: Callable[..., Any]) -> Callable[..., Any]:
    """fully_shard registers a state's hooks there."""

    @functools.wraps(function)
    def tell(state: Any, *args: Any, **kwargs: Any) -> None:
        function(state, *args, **kwargs)
        patches.exchange_hooks(state)

    return tell


def _force_complete(function: Callable[..., Any]) -> Callable[..., Any]:
    """Some modules of a group did not run: the root's post-forward ends the forward of all."""

    @functools.wraps(function)
    def tell(root: Any, output: Any) -> Any:
        incomplete = [state for state in root._state_ctx.all_states if state is not root and state._modules_to_run_forward]
        for state in reversed(incomplete):
            _C.tell_state(Stage.BEFORE_POST_FORWARD, state)
        result = function(root, output)
        for state in reversed(incomplete):
            _C.tell_state(Stage.AFTER_POST_FORWARD, state)
        return result

    return tell


# -- together ----------------------------------------------------------------------------------------------------------------

_Wrap = Callable[[Any], Any]


def _for(use: Use) -> _Wrap:
    return lambda function: _scoped(function, use)


_METHODS: List[Tuple[Any, str, _Wrap]] = [
    (FSDPParamGroup, "unshard", _of_group),
    (FSDPParamGroup, "wait_for_unshard", _of_group),
    (FSDPParamGroup, "_to_sharded_post_forward", _of_group),
    (FSDPParamGroup, "pre_backward", _pre_backward),
    (FSDPParamGroup, "post_backward", _post_backward),
    (FSDPParamGroup, "lazy_init", _lazy_init),
    (FSDPParam, "init_unsharded_param", _init_unsharded_param),
    (FSDPParam, "to_sharded_post_forward", _for(Use.POST_FORWARD_SHARD)),
    (FSDPParam, "to_accumulated_grad_if_needed", _to_accumulated_grad),
    (FSDPParam, "to_sharded_dtensor", _to_sharded_dtensor),
    (FSDPState, "init", _state_init),
    (FSDPState, "_force_complete_incomplete_states", _force_complete),
    (FSDPModule, "unshard", _unshard_by_hand),
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
_PROPERTIES: List[Tuple[Any, str, Use]] = [
    (FSDPParam, "all_gather_inputs", Use.ALL_GATHER_INPUT),
    (FSDPParam, "unsharded_zero_grad_data", Use.UNSHARDED_GRAD),
]


class Patches:
    """What stands in FSDP2's place. `acquire` and `release` come in pairs."""

    def __init__(self) -> None:
        self._users = 0
        self._originals: List[Tuple[Any, str, Any]] = []
        self._exchanged: List[Tuple[Callable[[], Any], int]] = []  # where: a weak reference to a table, and the place in it

    def acquire(self) -> None:
        self._users += 1
        if self._users > 1:
            return
        for owner, name, wrap in _METHODS:
            self._replace(owner, name, wrap(getattr(owner, name)))
        for owner, name, use in _PROPERTIES:
            self._replace(owner, name, property(_scoped(getattr(owner, name).fget, use)))

    def release(self) -> None:
        self._users -= 1
        if self._users > 0:
            return
        for owner, name, original in reversed(self._originals):
            setattr(owner, name, original)
        self._originals.clear()
        for reference, number in self._exchanged:
            table = reference()
            original = getattr(table.get(number), _ORIGINAL, None) if table is not None else None
            if table is not None and original is not None:
                table[number] = original
        self._exchanged.clear()

    def exchange_hooks(self, state: Any) -> None:
        """The forward hooks of a state's modules, in their places. Nothing happens where it was done."""
        if self._users == 0:
            return
        for handle in (state._pre_forward_hook_handle, state._post_forward_hook_handle):
            for one in getattr(handle, "handles", (handle,)):
                table = one.hooks_dict_ref()
                hook = table.get(one.id) if table is not None else None
                if hook is None or hasattr(hook, _ORIGINAL):
                    continue
                before = any(table is module._forward_pre_hooks for module in state._modules)
                table[one.id] = around = (_around_pre_forward if before else _around_post_forward)(state, hook)
                setattr(around, _ORIGINAL, hook)
                self._exchanged.append((one.hooks_dict_ref, one.id))

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._originals.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)


patches = Patches()
