"""The gradient buckets of DistributedDataParallel, which torch allocates without a hook for the life of the model.

The reducer allocates them twice: in its constructor, and in the order of the gradients when the second forward begins.
"""

import functools
from collections.abc import Callable
from typing import Any

from plimsoll.run.torch_patches.after_import import after_import
from plimsoll.wrapping import replace, wrapper


@functools.cache
def install(scope: Callable[[], Any]) -> None:
    """Enters `scope()` while buckets are allocated. One call is enough, also for a forked child that is observed."""
    after_import.call("torch.distributed", lambda distributed: _wrap_allocations(distributed, scope))


def _wrap_allocations(distributed: Any, scope: Callable[[], Any]) -> None:
    reducer = getattr(distributed, "Reducer", None)  # None: torch without torch.distributed

    @wrapper
    def within(function: Any, *args: Any, **kwargs: Any) -> Any:
        with scope():
            return function(*args, **kwargs)

    for name in ("__init__", "_rebuild_buckets"):
        if hasattr(reducer, name):
            replace(reducer, name, within)
