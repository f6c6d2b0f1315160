"""Exact peaks between two borders, from the allocator itself.

The allocator keeps, for each statistic, the highest value since its peaks were last reset. At each border the peaks are
read and reset. `user_view` gives the script the peaks it would have seen without that.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

Stats = dict[str, Any]


class Window(NamedTuple):
    """What one device's allocator did between two borders, in bytes."""

    active_peak: int
    allocated_peak: int
    reserved_peak: int
    active_end: int
    reserved_end: int

    def then(self, later: "Window") -> "Window":
        return Window(
            max(self.active_peak, later.active_peak),
            max(self.allocated_peak, later.allocated_peak),
            max(self.reserved_peak, later.reserved_peak),
            later.active_end,
            later.reserved_end,
        )


Windows = dict[int, Window]

Path = tuple[Any, ...]


def fold_peaks(stats: Stats, into: dict[Path, int], path: Path = ()) -> None:
    """Keeps, for every statistic that has a peak, the highest one seen."""
    for key, value in stats.items():
        if not isinstance(value, dict):
            continue
        here = (*path, key)
        peak = value.get("peak")
        if isinstance(peak, int):
            if peak > into.get(here, -1):
                into[here] = peak
        else:
            fold_peaks(value, into, here)


def raise_peaks(stats: Stats, kept: dict[Path, int], path: Path = ()) -> None:
    """Puts kept peaks back where they are higher."""
    for key, value in stats.items():
        if not isinstance(value, dict):
            continue
        here = (*path, key)
        peak = value.get("peak")
        if isinstance(peak, int):
            value["peak"] = max(peak, kept.get(here, peak))
        else:
            raise_peaks(value, kept, here)


class _Total:
    """A count that the script may set back to zero (torch.cuda.reset_accumulated_memory_stats); this one goes on."""

    def __init__(self) -> None:
        self.value = 0
        self._seen = 0

    def see(self, count: int) -> None:
        self.value += count - self._seen if count >= self._seen else count
        self._seen = count


class Device:
    def __init__(self) -> None:
        self.users_peaks: dict[Path, int] = {}  # since the script last reset its peaks
        self.window: list[int] = [0, 0, 0]  # of this window, before the script reset its peaks in it
        self.segments_peak = 0
        self.active_peak = 0
        self.allocated_peak = 0
        self.reserved_peak = 0
        self.allocations = _Total()
        self.retries = _Total()  # times that cached segments were given back to find room


class Peaks:
    """`read` and `reset` are the allocator's own functions, taken before anyone wrapped them; both take a device index.
    `device_count()` is 0 until CUDA is initialised."""

    def __init__(
        self, read: Callable[[int], Stats], reset: Callable[[int], Any], device_count: Callable[[], int]
    ) -> None:
        self._read = read
        self._reset = reset
        self._device_count = device_count
        self.restart()

    def restart(self) -> None:
        self.devices: dict[int, Device] = {}
        self._lock = threading.RLock()

    def cut(self) -> Windows:
        """What happened on each used device since the last cut; begins a new window."""
        windows: Windows = {}
        with self._lock:
            for index in range(self._device_count()):
                try:
                    stats = self._read(index)
                except RuntimeError:  # a pluggable allocator keeps no statistics
                    return windows
                window = self._see(index, stats)
                if window is not None:
                    windows[index] = window
                    self._reset(index)
        return windows

    def _see(self, index: int, stats: Stats) -> Window | None:
        active, reserved = stats["active_bytes"]["all"], stats["reserved_bytes"]["all"]
        allocated = stats["allocated_bytes"]["all"]
        device = self.devices.get(index)
        if device is None:
            if not reserved["peak"]:
                return None
            device = self.devices[index] = Device()
        fold_peaks(stats, device.users_peaks)
        window = Window(
            max(active["peak"], device.window[0]),
            max(allocated["peak"], device.window[1]),
            max(reserved["peak"], device.window[2]),
            active["current"],
            reserved["current"],
        )
        device.window = [0, 0, 0]
        device.active_peak = max(device.active_peak, window.active_peak)
        device.allocated_peak = max(device.allocated_peak, window.allocated_peak)
        device.reserved_peak = max(device.reserved_peak, window.reserved_peak)
        device.segments_peak = max(device.segments_peak, stats["segment"]["all"]["peak"])
        device.allocations.see(stats["allocation"]["all"]["allocated"])
        device.retries.see(stats["num_alloc_retries"])
        return window

    # -- the script's own calls ------------------------------------------------------------------------------------------

    def stats_for_user(self, index: int, stats: Stats) -> Stats:
        """`stats` as they would be, had nobody but the script reset the peaks."""
        device = self.devices.get(index)
        if device is not None:
            raise_peaks(stats, device.users_peaks)
        return stats

    def user_resets(self, index: int) -> None:
        """REQUIRES: called right before the allocator's reset, which the script asked for."""
        with self._lock:
            device = self.devices.get(index)
            try:
                stats = self._read(index)
            except RuntimeError:
                return
            if device is None:
                if not stats["reserved_bytes"]["all"]["peak"]:
                    return
                device = self.devices[index] = Device()
            peaks = [stats[name]["all"]["peak"] for name in ("active_bytes", "allocated_bytes", "reserved_bytes")]
            device.window = [max(one, other) for one, other in zip(device.window, peaks)]
            device.segments_peak = max(device.segments_peak, stats["segment"]["all"]["peak"])
            device.users_peaks.clear()
