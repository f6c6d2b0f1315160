"""Will it fit, and where does the memory go? Answers before you rent the GPUs.

    from plimsoll import FSDPMemTracker, MemTracker   # instead of torch.distributed._tools'
    plimsoll.plan("llama3-8b", gpus=8)                # a model by its name or config
    plimsoll.estimate(train, world_size=64)           # your own function, on pretend GPUs

Names are imported on first use: only the trackers import torch and the native part.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from plimsoll.api import Estimate as Estimate
    from plimsoll.api import Plan as Plan
    from plimsoll.api import estimate as estimate
    from plimsoll.api import plan as plan
    from plimsoll.api import pretend as pretend
    from plimsoll.trackers import FSDPMemTracker as FSDPMemTracker
    from plimsoll.trackers import MemTracker as MemTracker
    from plimsoll.trackers import ModTracker as ModTracker

_PLACES = {
    **dict.fromkeys(("MemTracker", "FSDPMemTracker", "ModTracker"), "plimsoll.trackers"),
    **dict.fromkeys(("plan", "estimate", "pretend", "Plan", "Estimate"), "plimsoll.api"),
}
__all__ = ["Estimate", "FSDPMemTracker", "MemTracker", "ModTracker", "Plan", "estimate", "plan", "pretend"]

# In the source tree the native part is in the build folder; in an installed package it is beside this file.
_BUILT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build/release/python/plimsoll"
)
if os.path.isdir(_BUILT):
    __path__.append(_BUILT)


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'plimsoll' has no attribute {name!r}")
    value = getattr(importlib.import_module(place), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
