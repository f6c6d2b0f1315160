"""Exact peaks between two phase borders, from the allocator itself.

For each statistic, the allocator keeps the highest value since its peaks were last reset. At each border the observer reads
and resets the peaks. The script does not see these resets: `install`.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from plimsoll.wrapping import replace, wrapper

Stats = dict[str, Any]


class Window(NamedTuple):
    """The allocator of one device between two borders, in bytes: peaks, and values at the end."""

    active: int
    allocated: int
    reserved: int
    active_end: int
    reserved_end: int

    def then(self, later: "Window") -> "Window":
        peaks = [max(pair) for pair in zip(self[:3], later[:3])]
        return Window._make((*peaks, later.active_end, later.reserved_end))


Windows = dict[int, Window]

Path = tuple[Any, ...]


def _each_peak(stats: Stats, path: Path = ()) -> Iterator[tuple[Path, Stats]]:
    """Every statistic that has a peak, with its path."""
    for key, value in stats.items():
        if isinstance(value, dict):
            if isinstance(value.get("peak"), int):
                yield (*path, key), value
            else:
                yield from _each_peak(value, (*path, key))


def fold_peaks(stats: Stats, into: dict[Path, int]) -> None:
    """Keeps the highest peak seen of every statistic that has one."""
    for path, value in _each_peak(stats):
        into[path] = max(value["peak"], into.get(path, 0))


def raise_peaks(stats: Stats, kept: dict[Path, int]) -> None:
    """Replaces peaks by kept ones that are higher."""
    for path, value in _each_peak(stats):
        value["peak"] = max(value["peak"], kept.get(path, 0))


class _Total:
    """A count that the script can set to zero (torch.cuda.reset_accumulated_memory_stats), without those resets."""

    def __init__(self) -> None:
        self.value = 0
        self._seen = 0

    def see(self, count: int) -> None:
        self.value += count - self._seen if count >= self._seen else count
        self._seen = count


class Device:
    def __init__(self) -> None:
        self.script_peaks: dict[Path, int] = {}  # since the script last reset its peaks
        self.window = [0, 0, 0]  # peaks of the open window, up to the script's last reset in it
        self.segments_peak = 0
        self.active_peak = 0
        self.allocated_peak = 0
        self.reserved_peak = 0
        self.allocations = _Total()
        self.retries = _Total()  # how often the allocator freed cached segments to find room

    def see_peaks(self, stats: Stats) -> None:
        """REQUIRES: called before every reset of the allocator's peaks."""
        peaks = (stats[name]["all"]["peak"] for name in ("active_bytes", "allocated_bytes", "reserved_bytes"))
        self.window = [max(pair) for pair in zip(self.window, peaks)]
        self.segments_peak = max(self.segments_peak, stats["segment"]["all"]["peak"])

    def close_window(self, stats: Stats) -> Window:
        ends = (stats[name]["all"]["current"] for name in ("active_bytes", "reserved_bytes"))
        window = Window(*self.window, *ends)
        self.window = [0, 0, 0]
        self.active_peak = max(self.active_peak, window.active)
        self.allocated_peak = max(self.allocated_peak, window.allocated)
        self.reserved_peak = max(self.reserved_peak, window.reserved)
        self.allocations.see(stats["allocation"]["all"]["allocated"])
        self.retries.see(stats["num_alloc_retries"])
        return window


@dataclass(eq=False)
class Peaks:
    """`_read` and `_reset` are the allocator's own functions, not wrapped; both take a device index. `_device_count()` is 0
    until CUDA is initialized."""

    _read: Callable[[int], Stats]
    _reset: Callable[[int], Any]
    _device_count: Callable[[], int]

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.devices: dict[int, Device] = {}
        self._lock = threading.RLock()

    def cut(self) -> Windows:
        """Closes the window of each used device and opens the next."""
        windows: Windows = {}
        with self._lock:
            for index in range(self._device_count()):
                device, stats = self._see(index)
                if device is not None:
                    fold_peaks(stats, device.script_peaks)
                    windows[index] = device.close_window(stats)
                    self._reset(index)
        return windows

    def _see(self, index: int) -> tuple[Device | None, Stats]:
        """None for a device that was not used yet."""
        try:
            stats = self._read(index)
        except RuntimeError:  # A pluggable allocator keeps no statistics.
            return None, {}
        if index not in self.devices and stats["reserved_bytes"]["all"]["peak"]:
            self.devices[index] = Device()
        device = self.devices.get(index)
        if device is not None:
            device.see_peaks(stats)
        return device, stats

    def stats_for_script(self, index: int, stats: Stats) -> Stats:
        """`stats` with the peaks as if only the script had reset them."""
        device = self.devices.get(index)
        if device is not None:
            raise_peaks(stats, device.script_peaks)
        return stats

    def script_resets(self, index: int) -> None:
        """REQUIRES: called right before the reset that the script asked for."""
        with self._lock:
            device, _ = self._see(index)
            if device is not None:
                device.script_peaks.clear()


# Functions of torch._C. The second of each pair belongs to torch.accelerator; older versions of torch lack it.
_READERS = ("_cuda_memoryStats", "_accelerator_getDeviceStats")
_RESETTERS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


def install(c_module: Any, peaks: Peaks) -> None:
    """Hides the observer's resets from the script. REQUIRES: `peaks` holds the functions that were there before."""

    def read(original: Any, device: int) -> Any:
        return peaks.stats_for_script(device, original(device))

    def reset(original: Any, device: int) -> Any:
        peaks.script_resets(device)
        return original(device)

    for names, call in ((_READERS, read), (_RESETTERS, reset)):
        for name in names:
            if hasattr(c_module, name):
                replace(c_module, name, wrapper(call))
