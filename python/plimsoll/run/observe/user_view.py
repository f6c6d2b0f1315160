"""The script's own view of the peaks: what it would see, had the observer not reset them."""

from collections.abc import Callable
from typing import Any

from plimsoll.run.observe.peaks import Peaks

# The functions of torch._C that read the allocator's statistics, and those that reset the peaks. The second pair is
# torch.accelerator's; older versions of torch do not have it.
READERS = ("_cuda_memoryStats", "_accelerator_getDeviceStats")
RESETTERS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


def _like(original: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    wrapper.__name__ = original.__name__
    wrapper.__doc__ = original.__doc__
    return wrapper


def install(c_module: Any, peaks: Peaks) -> None:
    """REQUIRES: `peaks` holds the functions that were there before."""

    def reader(original: Callable[[int], Any]) -> Callable[[int], Any]:
        return _like(original, lambda device: peaks.stats_for_user(device, original(device)))

    def resetter(original: Callable[[int], Any]) -> Callable[[int], Any]:
        def reset(device: int) -> Any:
            peaks.user_resets(device)
            return original(device)

        return _like(original, reset)

    for name in READERS:
        if hasattr(c_module, name):
            setattr(c_module, name, reader(getattr(c_module, name)))
    for name in RESETTERS:
        if hasattr(c_module, name):
            setattr(c_module, name, resetter(getattr(c_module, name)))
