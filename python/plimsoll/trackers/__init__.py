"""Drop-in trackers: torch.distributed._tools' MemTracker, FSDPMemTracker and ModTracker, on plimsoll's ledger.

mem_tracker, fsdp_mem_tracker, mod_tracker    the classes, with torch's signatures
ref_types                                     categories and states, as enumerations
snapshots, display                            torch's dictionaries and printed forms
results                                       the other answers of trackers
hooks                                         observe modules, optimizers and checkpoints
fsdp2                                         observe FSDP2
fake                                          memory under FakeTensorMode and on meta
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.trackers.fsdp_mem_tracker import FSDPMemTracker as FSDPMemTracker
    from plimsoll.trackers.mem_tracker import MemTracker as MemTracker
    from plimsoll.trackers.mod_tracker import ModTracker as ModTracker

_PLACES = {"FSDPMemTracker": "fsdp_mem_tracker", "MemTracker": "mem_tracker", "ModTracker": "mod_tracker"}
__all__ = ["FSDPMemTracker", "MemTracker", "ModTracker"]


def __getattr__(name: str) -> Any:
    # `plimsoll run` uses only hooks: FSDP2 and DTensor are imported only for the trackers that need them.
    if name not in _PLACES:
        raise AttributeError(f"module 'plimsoll.trackers' has no attribute {name!r}")
    return getattr(importlib.import_module(f"plimsoll.trackers.{_PLACES[name]}"), name)
