"""The script's own view of the peaks: the values that it would see if the observer did not reset them."""

from collections.abc import Callable
from typing import Any

from plimsoll.run.observe.peaks import Peaks

# Functions of torch._C. The second of each pair belongs to torch.accelerator; older versions of torch lack it.
_READERS = ("_cuda_memoryStats", "_accelerator_getDeviceStats")
_RESETTERS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


def install(c_module: Any, peaks: Peaks) -> None:
    """REQUIRES: `peaks` holds the functions that were there before."""

    def reader(original: Callable[[int], Any]) -> Callable[[int], Any]:
        return lambda device: peaks.stats_for_script(device, original(device))

    def resetter(original: Callable[[int], Any]) -> Callable[[int], Any]:
        def reset(device: int) -> Any:
            peaks.script_resets(device)
            return original(device)

        return reset

    for names, wrap in ((_READERS, reader), (_RESETTERS, resetter)):
        for name in names:
            original = getattr(c_module, name, None)
            if original is not None:
                wrapper = wrap(original)
                wrapper.__name__, wrapper.__doc__ = original.__name__, original.__doc__
                setattr(c_module, name, wrapper)
