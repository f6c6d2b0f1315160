"""The script's own view of the peaks: the values that it would see if the observer did not reset them."""

from typing import Any

from plimsoll.run.observe.peaks import Peaks
from plimsoll.wrapping import replace, wrapper

# Functions of torch._C. The second of each pair belongs to torch.accelerator; older versions of torch lack it.
_READERS = ("_cuda_memoryStats", "_accelerator_getDeviceStats")
_RESETTERS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


def install(c_module: Any, peaks: Peaks) -> None:
    """REQUIRES: `peaks` holds the functions that were there before."""

    def read(original: Any, device: int) -> Any:
        return peaks.stats_for_script(device, original(device))

    def reset(original: Any, device: int) -> Any:
        peaks.script_resets(device)
        return original(device)

    for names, call in ((_READERS, read), (_RESETTERS, reset)):
        for name in names:
            if hasattr(c_module, name):
                replace(c_module, name, wrapper(call))
