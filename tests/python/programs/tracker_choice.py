"""The choice of trackers under test. PLIMSOLL_TRACKERS is `plimsoll` or `torch`; the default is ours if its native part is
built. Tests call `ours()` and `environment()`, their programs call `load()`."""

import importlib.util
import os
from types import SimpleNamespace

NAMES = ("plimsoll", "torch")
VARIABLE = "PLIMSOLL_TRACKERS"


def ours():
    """The tracker under test. `torch` proves the tests themselves: they then require only the features of torch's tracker."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        asked = "plimsoll" if importlib.util.find_spec("plimsoll._C") else "torch"
    assert asked in NAMES, asked
    return asked


def environment(which):
    return {VARIABLE: which, "OMP_NUM_THREADS": "1"}


def load():
    """MemTracker, FSDPMemTracker and ModTracker of the implementation that the environment names."""
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
