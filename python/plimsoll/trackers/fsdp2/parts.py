"""FSDP2's states, their parameter groups and the memory of these, for the native part."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_common import TrainingState

from plimsoll.native import MemoryUse as Use
from plimsoll.trackers.fsdp2.memory import adopt
from plimsoll.trackers.fsdp2.patches import patches


def state_of(module: torch.nn.Module) -> tuple[Any, list[torch.nn.Module], list[Any]] | None:
    if not isinstance(module, FSDPModule):
        return None
    state = module._get_fsdp_state()
    patches.exchange_hooks(state)
    for group in state._fsdp_param_groups:
        adopt(group)
    return state, list(state._modules), list(state._fsdp_param_groups)


def device_of(root: torch.nn.Module) -> torch.device:
    if not isinstance(root, FSDPModule):
        raise AssertionError(
            f"FSDPMemTracker needs a model under fully_shard, but fully_shard was not applied to this "
            f"{type(root).__name__}. Apply it to the root as well, after its submodules; without FSDP use MemTracker."
        )
    return root._get_fsdp_state()._device


def held_by(group: Any) -> list[tuple[Use, torch.Tensor]]:
    return [(use, tensor) for use, tensor in _held_by(group) if tensor is not None]


def _held_by(group: Any) -> Iterator[tuple[Use, torch.Tensor | None]]:
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
    # If it is also a gradient, its use is that of the gradient.
    if state is not None and state.all_reduce_input.dtype != getattr(group, "_orig_dtype", None):
        yield Use.ALL_REDUCE, state.all_reduce_input
