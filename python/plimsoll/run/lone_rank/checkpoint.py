"""torch.distributed.checkpoint of a lone rank: it saves and loads its own part, which only this rank can load.

The coordinator (rank 0) gathers the plans of all ranks; here each plan is its own. Duplicates are removed from the peers' plans, and
the check that the shards form whole tensors is skipped. A rank that is not the coordinator would receive its part of the global plan;
here it computes that part in the same way. There ``save`` returns None, because the metadata of the whole checkpoint does not exist.
"""

import dataclasses
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from plimsoll.wrapping import around


class _Planning(threading.local):
    """The rank of the current plan, in the group that saves."""

    rank = 0


_planning = _Planning()


def change_planner(planner: ModuleType) -> None:
    @around(planner, "dedup_save_plans")
    def keep_own(dedup: Any, all_plans: list[Any], *args: Any, **options: Any) -> list[Any]:
        if len(all_plans) == 1:
            return dedup(all_plans, *args, **options)
        return [
            plan if rank == _planning.rank else dataclasses.replace(plan, items=[])
            for rank, plan in enumerate(all_plans)
        ]

    @around(planner, "_validate_global_plan")
    def accept(validate: Any, global_plan: list[Any], metadata: Any) -> Any:
        if len(global_plan) > 1:  # An empty plan is valid: get this version's form of that answer.
            metadata = dataclasses.replace(metadata, state_dict_metadata={})
        return validate(global_plan, metadata)


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


def change_utils(utils: ModuleType) -> None:
    @around(utils._DistWrapper, "reduce_scatter")
    def reduce_scatter(original: Any, self: Any, step: str, map_fun: Callable[[], Any], reduce_fun: Any) -> Any:
        _planning.rank = self.get_rank()
        kept = _Kept(map_fun)
        result = original(self, step, kept, reduce_fun)
        if self.is_coordinator:
            return result
        if kept.error is not None:
            raise kept.error
        return reduce_fun([kept.value] * self.get_world_size())[self.get_rank()]

    @around(utils._DistWrapper, "all_reduce")
    def all_reduce(original: Any, self: Any, step: str, map_fun: Callable[[], Any], reduce_fun: Any) -> Any:
        kept = _Kept(map_fun)
        result = original(self, step, kept, reduce_fun)
        if not self.is_coordinator and kept.error is not None:
            raise kept.error
        return result
