"""The buckets of DistributedDataParallel: torch makes them itself, for the life of the model, and tells nobody.

They are made with the reducer, and once more, in the order in which gradients came, as the second forward begins.
"""

import functools
from collections.abc import Callable
from typing import Any

from plimsoll.run.torch_patches.after_import import after_import

_installed = False


def install(scope: Callable[[], Any]) -> None:
    """`scope()` is entered while they are made. Once is enough, also for a child that is watched anew."""
    global _installed
    if _installed:
        return
    _installed = True
    after_import.call("torch.distributed", lambda distributed: _stand_around(distributed, scope))


def _stand_around(distributed: Any, scope: Callable[[], Any]) -> None:
    reducer = getattr(distributed, "Reducer", None)  # None: a torch without torch.distributed
    for name in ("__init__", "_rebuild_buckets"):
        if hasattr(reducer, name):
            setattr(reducer, name, _within(scope, getattr(reducer, name)))


def _within(scope: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return function(*args, **kwargs)

    return within
