"""FSDP1's optimizer state on a lone rank: the peers' state, derived from this rank.

With ``use_orig_params`` a rank has optimizer state only for parameters in its part of the flat parameter. The ranks exchange the
names and sizes of their state (`_optim_utils.py`, torch 2.13). The flat parameter's metadata says which elements a peer holds:

- a trained parameter of which this rank holds no element has state at its holders, if this rank has state for other parameters of
  the same flat parameter. If this rank holds none of those, the rule is: if the optimizer has any state;
- that state has the kinds (names, dtypes, values that are not tensors) of another parameter's state, with the shard's length.

A rank other than 0 that loads a state which only rank 0 has read gets the state that the script passed, or else the state of its own
optimizer in whole shapes. A rank that holds no element of any parameter knows no state: its state dict is empty.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from plimsoll.run.lone_rank import objects
from plimsoll.wrapping import around, replace, wrapper


class _Loaded(NamedTuple):
    """The arguments of the script's call that loads a state."""

    given: dict[str, Any]
    model: Any
    optimizer: Any


class _Now(threading.local):
    """Arguments of the running call that torch does not pass on. They hold tensors, so they are dropped after the call."""

    units: dict[str, Any] = {}  # FSDPParamInfo by parameter name
    state: dict[Any, dict[str, Any]] = {}  # the optimizer's
    loaded: _Loaded | None = None


_now = _Now()


def _held_by_ranks(unit: Any, name: str) -> Iterator[tuple[int, int]]:
    """The ranks that hold elements of a parameter, in the group that shards it, with the number of elements."""
    flat, index = unit.handle.flat_param, unit.param_indices[name]
    piece, start = flat._sharded_size.numel(), 0
    parameters = -1
    for numel, is_padding in zip(flat._numels_with_padding, flat._is_padding_mask):
        parameters += not is_padding
        if parameters == index:
            for rank in range(start // piece, -(-(start + numel) // piece)):
                yield rank, min(start + numel, (rank + 1) * piece) - max(start, rank * piece)
            return
        start += numel


def _is_held(unit: Any, name: str) -> bool:
    return bool(unit.handle.flat_param._shard_param_infos[unit.param_indices[name]].in_shard)


def _is_trained(unit: Any, name: str) -> bool:
    return bool(unit.param_requires_grad and unit.param_requires_grad[unit.param_indices[name]])


class _Named(NamedTuple):
    """A parameter of the optimizer."""

    names: tuple[str, ...]
    has_state: bool


def _names_at_peers(parameters: list[_Named], units: dict[str, Any]) -> list[_Named]:
    """The parameters of which only peers have state."""
    any_state = any(parameter.has_state for parameter in parameters)
    here: dict[int, bool] = {}  # by unit: True if this rank has state for a parameter of the unit
    for parameter in parameters:
        name = parameter.names[0]
        if name in units and _is_trained(units[name], name) and _is_held(units[name], name):
            unit = id(units[name])
            here[unit] = here.get(unit, False) or parameter.has_state
    found = []
    for parameter in parameters:
        name = parameter.names[0]
        if name in units and not parameter.has_state and _is_trained(units[name], name):
            if not _is_held(units[name], name) and here.get(id(units[name]), any_state):
                found.append(parameter)
    return found


def _map_keys(
    utils: ModuleType,
    map_keys: Any,
    optim_state_dict: dict[str, Any],
    group: Any,
    param_key_to_param: dict[Any, Any],
    param_to_fqns: dict[Any, list[str]],
    fqn_to_fsdp_param_info: dict[str, Any],
    merge_keys: bool = False,
) -> Any:
    units, has_state = fqn_to_fsdp_param_info, optim_state_dict["state"]
    parameters = [_Named(tuple(param_to_fqns[p]), key in has_state) for key, p in param_key_to_param.items()]

    def key_of(parameter: _Named) -> Any:
        return utils._OptimStateKey(parameter.names, parameter.names[0] in units)

    def gathered(mine: list[Any]) -> list[list[Any]]:
        ranks = [[key for key in mine if not key.is_fsdp_managed] for _ in range(dist.get_world_size(group))]
        managed = [key for key in mine if key.is_fsdp_managed]
        for key in managed + [key_of(parameter) for parameter in _names_at_peers(parameters, units)]:
            unit = units[key.unflat_param_names[0]]
            for rank, _ in _held_by_ranks(unit, key.unflat_param_names[0]):
                for replica in ranks[rank :: unit.state.world_size]:
                    replica.append(key)
        ranks[dist.get_rank(group)] = mine
        return ranks

    at_rank_0 = [key_of(parameter) for parameter in parameters if parameter.has_state]
    with objects.peers_have(gathered=gathered, broadcast=[at_rank_0]):
        return map_keys(optim_state_dict, group, param_key_to_param, param_to_fqns, units, merge_keys)


def _kinds(utils: ModuleType, state: dict[str, Any]) -> Any:
    """The same as `_allgather_state_info` sends, without a read from the device."""
    info = utils.StateInfo({}, {}, {})
    for name, value in utils.sorted_items(state):
        if not torch.is_tensor(value):
            info.non_tensors[name] = value
        elif value.dim() == 0:
            info.scalar_tensors[name] = (
                value.clone() if value.device.type == "cpu" else torch.zeros((), dtype=value.dtype)
            )
        else:
            info.tensors[name] = utils._PosDimTensorInfo(value.shape, value.dtype)
    return info


def _is_empty(info: Any) -> bool:
    return not (info.tensors or info.scalar_tensors or info.non_tensors)


def _gather_kinds(utils: ModuleType, all_gather: Any, fsdp_state: Any, input_states: dict[str, Any]) -> Any:
    unit = _now.units.get(next(iter(input_states), ""))
    if unit is None:
        return all_gather(fsdp_state, input_states)
    states: list[dict[str, Any]] = [*input_states.values(), *_now.state.values()]
    model = next(filter(None, states), {})

    def gathered(mine: dict[str, Any]) -> list[dict[str, Any]]:
        ranks = [dict.fromkeys(mine, utils.StateInfo({}, {}, {})) for _ in range(fsdp_state.world_size)]
        for name, info in mine.items():
            if _is_empty(info) and not _is_held(unit, name):
                info = _kinds(utils, model)
            if _is_empty(info):
                continue
            for rank, numel in _held_by_ranks(unit, name):
                tensors = {
                    kind: utils._PosDimTensorInfo(torch.Size([numel]), tensor.dtype)
                    for kind, tensor in info.tensors.items()
                }
                ranks[rank][name] = utils.StateInfo(tensors, info.scalar_tensors, info.non_tensors)
        ranks[fsdp_state.rank] = mine
        return ranks

    with objects.peers_have(gathered=gathered):
        return all_gather(fsdp_state, input_states)


def _convert(
    convert: Any, keys: Any, param_keys: Any, units: dict[str, Any], state: dict[Any, Any], *args: Any, **options: Any
) -> Any:
    _now.units, _now.state = units, state
    try:
        return convert(keys, param_keys, units, state, *args, **options)
    finally:
        _now.units, _now.state = {}, {}


def _whole_state(utils: ModuleType, loaded: _Loaded) -> dict[str, Any]:
    """The state dict of the whole model with the kinds of this rank's optimizer, and shapes for tensors."""
    optimizer = loaded.optimizer
    own = optimizer.state_dict() if optimizer is not None else {"state": {}}
    model = next((state for state in own["state"].values() if state), None)
    if model is None:
        raise RuntimeError(
            f"rank {dist.get_rank()} needs the optimizer state that rank 0 has read, which a lone rank cannot know: "
            "give this rank the state dict too, take an optimizer step before, or run with --rank 0"
        )
    names_of = utils._get_param_to_fqns(loaded.model)
    parameters = utils._get_param_key_to_param(optimizer)
    units = utils._get_fqn_to_fsdp_param_info(loaded.model)
    state: dict[str, Any] = {}
    for key, parameter in parameters.items():
        for name in names_of[parameter]:
            unit = units.get(name)
            if unit is None:
                info, shape = _kinds(utils, own["state"].get(key, {})), parameter.shape
            elif unit.param_requires_grad and not _is_trained(unit, name):
                continue
            else:
                info, shape = _kinds(utils, model), unit.handle.flat_param._shapes[unit.param_indices[name]]
            tensors = {kind: utils._PosDimTensorInfo(shape, tensor.dtype) for kind, tensor in info.tensors.items()}
            state[name] = {**tensors, **info.scalar_tensors, **info.non_tensors}
    return {"state": state, "param_groups": utils._unflatten_param_groups(own, parameters, names_of)}


def _receive(utils: ModuleType, broadcast: Any, fsdp_state: Any, optim_state: dict[str, Any], group: Any) -> Any:
    def as_sent(value: torch.Tensor) -> Any:
        return value.cpu() if value.dim() == 0 else utils._PosDimTensorInfo(value.shape, value.dtype)

    loaded = _now.loaded
    if loaded is None or dist.get_rank(group) == 0:
        return broadcast(fsdp_state, optim_state, group=group)
    if "state" in loaded.given:
        sent = utils.tree_map_only(torch.Tensor, as_sent, loaded.given)
    else:
        sent = _whole_state(utils, loaded)
    with objects.peers_have(broadcast=[sent]):
        return broadcast(fsdp_state, optim_state, group=group)


def change_utils(utils: ModuleType) -> None:
    calls: dict[str, Callable[..., Any]] = {
        "_map_param_key_to_optim_keys": functools.partial(_map_keys, utils),
        "_allgather_state_info": functools.partial(_gather_kinds, utils),
        "_convert_state_with_orig_params": _convert,
        "_broadcast_processed_state": functools.partial(_receive, utils),
    }
    if all(hasattr(utils, name) for name in calls):  # of torch 2.5 to 2.13
        for name, call in calls.items():
            replace(utils, name, wrapper(call))


def change_fsdp(fsdp: ModuleType) -> None:
    @around(fsdp.FullyShardedDataParallel, "_optim_state_dict_to_load_impl")
    def load(
        original: Any,
        optim_state_dict: dict[str, Any],
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
        **options: Any,
    ) -> Any:
        _now.loaded = _Loaded(optim_state_dict or {}, model, optim)
        try:
            return original(optim_state_dict, model, optim_input, optim, **options)
        finally:
            _now.loaded = None
