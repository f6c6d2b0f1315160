"""torch.distributed.checkpoint of a lone rank: it saves and loads its own part.

The coordinator (rank 0) gathers the plans of all ranks; here each plan is its own. Duplicates are removed from the peers' plans,
so this rank writes all its data. The check that the shards form whole tensors is skipped, because those of the peers are missing.
A rank that is not the coordinator would receive its part of the global plan; here it computes that part in the same way.

The result is this rank's part of a checkpoint, which only this rank can load. On a rank that is not the coordinator ``save``
returns None, because the metadata of the whole checkpoint does not exist there.
"""

import dataclasses
import functools
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from plimsoll.run.torch_patches.after_import import after_import


class _Planning(threading.local):
    """The rank of the current plan, in the group that saves."""

    rank = 0


_planning = _Planning()


def _planner_imported(planner: ModuleType) -> None:
    dedup, validate = planner.dedup_save_plans, planner._validate_global_plan

    @functools.wraps(dedup)
    def keep_own(all_plans: list[Any], *args: Any, **options: Any) -> list[Any]:
        if len(all_plans) == 1:
            return dedup(all_plans, *args, **options)
        return [
            plan if rank == _planning.rank else dataclasses.replace(plan, items=[])
            for rank, plan in enumerate(all_plans)
        ]

    @functools.wraps(validate)
    def accept(global_plan: list[Any], metadata: Any) -> Any:
        if len(global_plan) > 1:  # An empty plan is valid: get this version's form of that answer.
            metadata = dataclasses.replace(metadata, state_dict_metadata={})
        return validate(global_plan, metadata)

    setattr(planner, "dedup_save_plans", keep_own)
    setattr(planner, "_validate_global_plan", accept)


class _Kept:
    """Keeps a function's result or exception; torch passes an exception only to the coordinator."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.error: Any = None
        self.value: Any = None

    def __call__(self) -> Any:
        try:
            self.value = self._function()
        except BaseException as error:
            self.error = error
            raise
        return self.value


def _utils_imported(utils: ModuleType) -> None:
    wrapper = utils._DistWrapper
    reduce_scatter, all_reduce = wrapper.reduce_scatter, wrapper.all_reduce

    @functools.wraps(reduce_scatter)
    def lone_reduce_scatter(self: Any, step: str, map_fun: Callable[[], Any], reduce_fun: Callable[..., Any]) -> Any:
        _planning.rank = self.get_rank()
        kept = _Kept(map_fun)
        result = reduce_scatter(self, step, kept, reduce_fun)
        if self.is_coordinator:
            return result
        if kept.error is not None:
            raise kept.error
        return reduce_fun([kept.value] * self.get_world_size())[self.get_rank()]

    @functools.wraps(all_reduce)
    def lone_all_reduce(self: Any, step: str, map_fun: Callable[[], Any], reduce_fun: Callable[..., Any]) -> Any:
        kept = _Kept(map_fun)
        result = all_reduce(self, step, kept, reduce_fun)
        if not self.is_coordinator and kept.error is not None:
            raise kept.error
        return result

    wrapper.reduce_scatter = lone_reduce_scatter
    wrapper.all_reduce = lone_all_reduce


def install() -> None:
    after_import.call("torch.distributed.checkpoint.default_planner", _planner_imported)
    after_import.call("torch.distributed.checkpoint.utils", _utils_imported)
