"""DTensor's search for strided shards, made once for an operator.

An optimizer's foreach operators take lists with an entry for each parameter. For each entry of the result torch 2.13 looks through
all entries of all arguments for strided shards: with the square of the number of parameters, half of the propagation of
a model of a few hundred. The arguments are the same each time, and so is the answer. Here they are looked through once;
where there is no such shard, as nearly always, torch's own function would do nothing, and is not called.
"""

import functools
from types import ModuleType
from typing import Any, Tuple

from plimsoll.run.after_import import after_import

_MODULE = "torch.distributed.tensor._sharding_prop"
_FUNCTION = "_propagate_use_strided_shard_flag"  # of torch 2.13; others have none.


def install() -> None:
    after_import.call(_MODULE, _search_once)


def _search_once(module: ModuleType) -> None:
    propagate = getattr(module, _FUNCTION, None)
    strided = getattr(module, "_StridedShard", None)
    if propagate is None or strided is None:
        return
    last: Tuple[Any, bool] = (None, False)  # The arguments looked through last, and whether a strided shard is among them.

    @functools.wraps(propagate)
    def search_once(op_strategy: Any, op_schema: Any) -> None:
        nonlocal last
        found = last  # One look at it: another thread may be here too.
        if found[0] is not op_schema:
            found = op_schema, any(isinstance(place, strided) for spec in op_schema.args_spec for place in spec.placements)
            last = found
        if found[1]:
            propagate(op_strategy, op_schema)

    setattr(module, _FUNCTION, search_once)
