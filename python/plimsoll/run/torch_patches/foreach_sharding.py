"""DTensor's sharding propagation for an optimizer's operators, computed once for each kind of parameter.

The foreach and fused operators take lists with one entry per parameter. torch propagates each entry, in part with quadratic cost:
seconds for a few hundred parameters. Parameters with the same shape, dtype and placement have the same answer, so torch's propagation
gets one entry of each kind, and its answer is copied to the others. A rule that the script registered gets all entries.
"""

import dataclasses
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from plimsoll.run.torch_patches import garbage_collection
from plimsoll.run.torch_patches.after_import import after_import
from plimsoll.wrapping import around

_MODULE = "torch.distributed.tensor._sharding_prop"
_METHOD = "propagate_op_sharding_non_cached"
_OF_LISTS = ("aten::_foreach_", "aten::_fused_adam", "aten::_fused_adagrad", "aten::_fused_sgd")
_NUMBERS = (bool, int, float, complex)
_OF_TORCH = "torch.distributed.tensor._ops."
# Containers that torch makes for an entry, measured by the garbage collections of a step: rules of torch 2.13, and older rules.
_CONTAINERS, _CONTAINERS_BEFORE = 65, 30
_RULES_OF_2_13 = "_expand_single_dim_strategy_to_mesh"


def install() -> None:
    after_import.call(_MODULE, _propagate_by_kind)


def _propagate_by_kind(module: ModuleType) -> None:
    propagator, spec_type = getattr(module, "ShardingPropagator", None), getattr(module, "DTensorSpec", None)
    if not hasattr(propagator, _METHOD) or spec_type is None:
        return
    containers = _CONTAINERS if hasattr(module, _RULES_OF_2_13) else _CONTAINERS_BEFORE

    @around(propagator, _METHOD)
    def propagate_by_kind(propagate: Any, self: Any, op_schema: Any) -> Any:
        kinds = _kinds(op_schema, spec_type) if _is_of_lists(self, op_schema.op) else None
        if kinds is None:
            return propagate(self, op_schema)
        try:
            answer = kinds.for_all(propagate(self, _with_lists(op_schema, kinds.first_of_each)))
        except Exception:
            answer = None  # Ask again with all entries, so that torch's own error names them.
        if answer is None:
            return propagate(self, op_schema)
        garbage_collection.make_up_for(containers * kinds.number)
        return answer


def _is_of_lists(propagator: Any, op: Any) -> bool:
    """True if the operator treats each entry separately, by torch's own rules."""
    if not op.name().startswith(_OF_LISTS):
        return False
    registered = (
        getattr(propagator, name, {}).get(op) for name in ("op_strategy_funcs", "op_single_dim_strategy_funcs")
    )
    rules = [getattr(rule, "func", rule) for rule in registered if rule is not None]
    return all(getattr(rule, "__module__", "").startswith(_OF_TORCH) for rule in rules)


class _Kinds:
    """The kinds of equal entries."""

    def __init__(self, firsts: Sequence[int], kind_of: Sequence[int]) -> None:
        self._firsts = firsts  # the first entry of each kind
        self._kind_of = kind_of  # the kind of each entry
        self.number = len(kind_of)

    def first_of_each(self, entries: Sequence[Any]) -> list[Any]:
        return [entries[first] for first in self._firsts]

    def each(self, of_kinds: Sequence[Any]) -> list[Any]:
        """One object per entry, as torch returns."""
        return [_copy(of_kinds[kind]) for kind in self._kind_of]

    def for_all(self, answer: Any) -> Any | None:
        """torch's answer for the first entry of each kind, extended to all entries. None for an unknown form of answer."""
        output, redistribute = answer.output_spec, answer.redistribute_schema
        if isinstance(output, (list, tuple)):
            if len(output) != len(self._firsts):
                return None
            output = type(output)(self.each(output))
        elif output is not None:
            return None
        if redistribute is not None:
            if {len(found) for found in _lists(redistribute)} != {len(self._firsts)}:
                return None
            redistribute = _with_lists(redistribute, self.each)
        return dataclasses.replace(answer, output_spec=output, redistribute_schema=redistribute)


def _kinds(op_schema: Any, spec_type: type) -> _Kinds | None:
    """None if entries cannot be compared, if all differ, or if the lists have different lengths."""
    lists = _lists(op_schema)
    if len({len(found) for found in lists}) != 1 or any(
        isinstance(found, (list, tuple)) for found in op_schema.kwargs_schema.values()
    ):
        return None
    kinds: dict[Any, int] = {}
    firsts: list[int] = []
    kind_of: list[int] = []
    for index, entries in enumerate(zip(*lists)):
        if not all(isinstance(entry, (spec_type, *_NUMBERS)) for entry in entries):
            return None
        try:
            kind = kinds.setdefault(tuple(map(_key_of, entries)), len(kinds))
        except TypeError:  # sizes that are symbols
            return None
        if kind == len(firsts):
            firsts.append(index)
        kind_of.append(kind)
    return _Kinds(firsts, kind_of) if len(firsts) < len(kind_of) else None


def _key_of(entry: Any) -> Any:
    if isinstance(entry, _NUMBERS):
        return type(entry), repr(entry)  # 1, 1.0 and True are equal but promote differently; so are 0.0 and -0.0.
    return entry, _groups(entry.mesh)


def _groups(mesh: Any) -> Any:
    """Meshes with equal ranks are equal, but may have different process groups."""
    try:
        return str(mesh._dim_group_names if hasattr(mesh, "_dim_group_names") else mesh._dim_group_infos)
    except Exception:  # a mesh without process groups
        return id(mesh)


def _is_list(argument: Any) -> bool:
    return isinstance(argument, (list, tuple)) and len(argument) > 0


def _lists(op_schema: Any) -> list[Sequence[Any]]:
    return [argument for argument in op_schema.args_schema if _is_list(argument)]


def _with_lists(op_schema: Any, change: Callable[[Sequence[Any]], list[Any]]) -> Any:
    """The schema with every list changed."""
    args = tuple(
        type(argument)(change(argument)) if _is_list(argument) else argument for argument in op_schema.args_schema
    )
    return type(op_schema)(op_schema.op, args, op_schema.kwargs_schema, schema_info=op_schema.schema_info)


def _copy(spec: Any) -> Any:
    return (
        spec.shallow_copy_with_tensor_meta(spec.tensor_meta) if hasattr(spec, "shallow_copy_with_tensor_meta") else spec
    )
