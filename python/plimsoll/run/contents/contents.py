"""The live allocations at the peak, by line of user code.

Categories and modules come from another source (run/attribution.py), which needs a C++ interface of one version of torch. This
one works with each torch.

The observer reads the allocator's history rarely: when the history has grown long, and at the end. A stretch of history
without a new highest peak is dropped unread. A snapshot at the begin of each stretch has the allocations live at that point.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from plimsoll.run.contents.blocks import Layout, highest_moment
from plimsoll.run.contents.history import History, Snapshot
from plimsoll.run.contents.lines import NO_FRAME, Line, reached_by_user, user_line_of_trace
from plimsoll.run.observe.peaks import Peaks

# Length of a stretch in allocations (up to three entries each). Reading it takes a few tenths of a second.
STRETCH_ALLOCATIONS = 20_000
# The allocator's limit. If one phase has more entries, its live allocations are unknown.
MAX_ENTRIES = 2_000_000

Group = dict[str, Any]


class Alive(NamedTuple):
    """Live allocations of one device at one moment, by line, largest first."""

    active_bytes: int
    groups: list[Group]


def group_by_line(blocks: Iterable[tuple[int, Line]]) -> list[Group]:
    sums: dict[Line, list[int]] = {}
    for size, line in blocks:
        entry = sums.setdefault(line, [0, 0])
        entry[0] += size
        entry[1] += 1
    ordered = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    return [{"bytes": size, "count": count, **line.as_record()} for line, (size, count) in ordered]


class Attribution:
    """Finds the line of an allocation. Threads of autograd do not run user code: their allocations get the line that called
    backward, and `function` says so. `_calls` stays short, because a loop calls backward from few lines."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, Line]] = []

    def backward_called(self, time_us: int, line: Line | None) -> None:
        if line is not None and (not self._calls or self._calls[-1][1] != line):
            self._calls.append((time_us, line))
            del self._calls[:-256]

    def line(self, frames: list[dict[str, Any]], time_us: int | None) -> Line:
        if reached_by_user(frames):
            line = user_line_of_trace(frames)
            assert line is not None
            return line
        caller = self._caller(time_us)
        if caller is not None:
            return caller._replace(function=f"autograd: backward in {caller.function}")
        return user_line_of_trace(frames) or NO_FRAME

    def _caller(self, time_us: int | None) -> Line | None:
        for called_us, line in reversed(self._calls):
            if time_us is None or called_us <= time_us:
                return line
        return None


_Mark = tuple[Any, ...]


def _mark(entry: dict[str, Any]) -> _Mark:
    """Identifies an entry of a trace."""
    return tuple(entry.get(name) for name in ("action", "addr", "size", "stream", "time_us"))


@dataclass(eq=False)
class Contents:
    """`_note(text)` reports a limitation."""

    _history: History
    _peaks: Peaks
    _keep_all: bool
    _is_capturing: Callable[[], bool]
    _note: Callable[[str], None]

    def __post_init__(self) -> None:
        self.attribution = Attribution()
        self._best: dict[int, Alive] = {}
        self._baseline: Snapshot = {"segments": []}
        self._last_before: dict[int, _Mark] = {}  # last trace entry before the baseline, by device
        self._allocations = 0

    def at_border(self) -> None:
        """REQUIRES: right after `peaks` was brought up to date."""
        if not self._history.started:
            return
        stretch = STRETCH_ALLOCATIONS
        if not self._may_clear:  # Each read costs the whole history, so it waits until the history is half full.
            stretch = max(stretch, self._history.max_entries // 6)
        if self._count() - self._allocations >= stretch:
            self.new_stretch()

    def new_stretch(self) -> None:
        """REQUIRES: right after `peaks` was brought up to date; the history is started."""
        if self._is_capturing():
            return
        self._read_back()
        self._allocations = self._count()
        if self._may_clear:
            self._history.clear()
        self._baseline = self._history.snapshot()
        traces = enumerate(self._baseline.get("device_traces", []))
        self._last_before = {index: _mark(trace[-1]) for index, trace in traces if trace}
        self._baseline["device_traces"] = []

    @property
    def _may_clear(self) -> bool:
        return not self._keep_all and not self._history.script_records

    def _count(self) -> int:
        return sum(device.allocations.value for device in self._peaks.devices.values())

    def finish(self) -> None:
        if self._history.started:
            self._read_back()

    def alive_at_peak(self, device: int) -> Alive | None:
        return self._best.get(device)

    def of_snapshot(self, snapshot: Snapshot, device: int) -> Alive:
        """The live allocations in a snapshot."""
        layout = Layout(snapshot, device)
        return Alive(layout.active_bytes, self._groups(layout))

    def _read_back(self) -> None:
        higher = [
            index
            for index, device in self._peaks.devices.items()
            if index not in self._best or device.active_peak > self._best[index].active_bytes
        ]
        if not higher:
            return
        snapshot = self._history.snapshot()
        for index in higher:
            traces = snapshot.get("device_traces", [])
            if index < len(traces):
                trace = self._since_baseline(index, traces[index])
                if trace is None:
                    self._note("live allocations at the peak are unknown: the allocator's history was too short")
                else:
                    self._read_device(index, trace, snapshot)

    def _since_baseline(self, index: int, trace: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        """None if the begin of the stretch is lost: a replay without it would be wrong."""
        last = self._last_before.get(index)
        if last is None:
            return trace if len(trace) < self._history.max_entries else None
        for position in range(len(trace) - 1, -1, -1):
            if _mark(trace[position]) == last:
                return trace[position + 1 :]
        return None

    def _read_device(self, index: int, trace: list[dict[str, Any]], snapshot: Snapshot) -> None:
        start = {"segments": self._baseline["segments"], "allocator_settings": snapshot.get("allocator_settings", {})}
        moment = highest_moment(Layout(start, index), trace)
        if index in self._best and moment.active_bytes <= self._best[index].active_bytes:
            return
        layout = Layout(start, index)
        for entry in trace[: moment.entries]:
            layout.apply(entry)
        self._best[index] = Alive(layout.active_bytes, self._groups(layout))

    def _groups(self, layout: Layout) -> list[Group]:
        return group_by_line(
            (block.size, self.attribution.line(block.frames, block.time_us)) for block in layout.blocks.values()
        )
