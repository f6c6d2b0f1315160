"""The stages of FSDP2 in a pass.

[Note: stages of forward] A state's forward hooks do its pre-forward and its post-forward. If modules were sharded together, each
has these hooks, and the last module to run ends the state's forward.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._C._dynamo import eval_frame
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

from plimsoll.native import _C, Stage
from plimsoll.trackers.fsdp2.memory import of_group
from plimsoll.wrapping import Wrap, wrapper

# Called with a state and its module when a forward begins.
on_forward: Callable[[Any, torch.nn.Module], None] | None = None


# See [Note: stages of forward].
def around_pre_forward(state: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def around(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if on_forward is not None:
            on_forward(state, module)
        _C.tell_state(Stage.BEFORE_PRE_FORWARD, state)
        result = hook(module, *args, **kwargs)
        _C.tell_state(Stage.AFTER_PRE_FORWARD, state)
        return result

    return _uncompiled(around)


def around_post_forward(state: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def around(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if len(state._modules) > 1 and state._modules_to_run_forward != {module}:
            return hook(module, *args, **kwargs)  # Other modules of the state have not run yet.
        _C.tell_state(Stage.BEFORE_POST_FORWARD, state)
        result = hook(module, *args, **kwargs)
        _C.tell_state(Stage.AFTER_POST_FORWARD, state)
        return result

    return _uncompiled(around)


def _uncompiled(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Excludes the hook from torch.compile, like FSDP2's own hooks. `disable` costs ten times the hook and imports the compiler, so
    it is called only while compilation is on."""

    @functools.wraps(hook)
    def call(*args: Any, **kwargs: Any) -> Any:
        if eval_frame.get_eval_frame_callback() is None:
            return hook(*args, **kwargs)
        return torch._dynamo.disable(hook, recursive=True, reason="skipping FSDP hooks")(*args, **kwargs)

    hidden: Any = call
    skip = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT)
    eval_frame.set_code_exec_strategy(hidden.__code__, skip)
    hidden._torchdynamo_disable = True
    return call


@wrapper
def _force_complete(function: Any, root: Any, output: Any) -> Any:
    """If some modules of a state did not run, the root's post-forward ends the forward of that state."""
    incomplete = [state for state in root._state_ctx.all_states if state is not root and state._modules_to_run_forward]
    for state in reversed(incomplete):
        _C.tell_state(Stage.BEFORE_POST_FORWARD, state)
    result = function(root, output)
    for state in reversed(incomplete):
        _C.tell_state(Stage.AFTER_POST_FORWARD, state)
    return result


@wrapper
def _pre_backward(function: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
    _C.tell_group(Stage.BEFORE_PRE_BACKWARD, group)
    result = function(group, *args, **kwargs)
    _C.tell_group(Stage.AFTER_PRE_BACKWARD, group)
    return result


@wrapper
def _post_backward(function: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
    _C.tell_whole_gradients(group)
    _C.tell_group(Stage.BEFORE_POST_BACKWARD, group)
    result = of_group(function)(group, *args, **kwargs)
    _C.tell_group(Stage.AFTER_POST_BACKWARD, group)
    return result


@wrapper
def _unshard_by_hand(function: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    for group in module._get_fsdp_state()._fsdp_param_groups:
        _C.tell_group(Stage.UNSHARD_BY_HAND, group)
    return function(module, *args, **kwargs)


FUNCTIONS: list[tuple[Any, str, Wrap]] = [
    (FSDPParamGroup, "pre_backward", _pre_backward),
    (FSDPParamGroup, "post_backward", _post_backward),
    (FSDPState, "_force_complete_incomplete_states", _force_complete),
    (FSDPModule, "unshard", _unshard_by_hand),
]
