"""Whose trackers a test looks at, in one place: PLIMSOLL_TRACKERS is `plimsoll` or `torch`; unset, it is ours where its
native part is built. Tests call `ours()` and `environment()`, the programs that they start `load()`."""

import importlib.util
import os
from types import SimpleNamespace

NAMES = ("plimsoll", "torch")
VARIABLE = "PLIMSOLL_TRACKERS"


def ours():
    """The side that is tested. `torch` proves the tests where ours is not built: then they ask for what torch's can do."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        asked = "plimsoll" if importlib.util.find_spec("plimsoll._C") else "torch"
    assert asked in NAMES, asked
    return asked


def environment(which):
    return {VARIABLE: which, "OMP_NUM_THREADS": "1"}


def load():
    """MemTracker, FSDPMemTracker, ModTracker: of the side that the environment names."""
    if os.environ[VARIABLE] == "plimsoll":
        from plimsoll import FSDPMemTracker, MemTracker, ModTracker

        return SimpleNamespace(MemTracker=MemTracker, FSDPMemTracker=FSDPMemTracker, ModTracker=ModTracker)
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed._tools.mod_tracker import ModTracker

    return SimpleNamespace(MemTracker=MemTracker, FSDPMemTracker=FSDPMemTracker, ModTracker=ModTracker)


def plain(snapshot):
    """A snapshot with strings for devices and categories."""
    return {
        str(device): {getattr(category, "value", category): size for category, size in books.items()}
        for device, books in snapshot.items()
    }
