"""A session observes torch in one process: it connects the parts of the observer and collects their record."""

from collections.abc import Callable
from typing import Any, Protocol

from plimsoll.document_fields import OTHER_DEVICE, PEAK, REPORT, written
from plimsoll.run import record
from plimsoll.run.attribution import Attribution
from plimsoll.run.contents.contents import MAX_ENTRIES, Contents
from plimsoll.run.contents.history import History
from plimsoll.run.contents.oom import Oom
from plimsoll.run.observe import peaks
from plimsoll.run.observe.compiled import Compiled
from plimsoll.run.observe.defects import Defects
from plimsoll.run.observe.graphs import Graphs
from plimsoll.run.observe.hooks import Hooks
from plimsoll.run.observe.peaks import Device, Peaks, Windows
from plimsoll.run.observe.phases import Highest, Timeline
from plimsoll.run.pretend_control import Control, parts_of
from plimsoll.run.settings import Settings
from plimsoll.run.values.readbacks import ReadBacks


class Process(Protocol):
    """The interface that a session needs from its process (`Observer`)."""

    def is_on(self) -> bool:
        """False in a forked child, until it initializes CUDA itself."""

    def step_done(self) -> None: ...

    def check_stop(self, finished_steps: int) -> None:
        """Raises EnoughSteps if no further step is wanted."""


class Session:
    """Observes torch in one process."""

    def __init__(
        self, torch: Any, control: Control | None, settings: Settings, defects: Defects, process: Process
    ) -> None:
        self.torch = torch
        self._control = control
        self._settings = settings
        self._defects = defects
        self._steps = record.StepTexts()
        self.peaks = Peaks(torch._C._cuda_memoryStats, torch._C._cuda_resetPeakMemoryStats, self._devices_in_use)
        self.timeline = Timeline(self._cut, process.step_done, process.check_stop)
        self.hooks = Hooks(torch, self.timeline, defects, process.is_on)
        keep_all = settings.snapshot is not None and settings.is_main
        self._history = History(torch, MAX_ENTRIES, "all" if keep_all else "alloc")
        self._contents = Contents(
            self._history, self.peaks, keep_all, torch.cuda.is_current_stream_capturing, defects.note
        )
        self._oom = Oom(
            torch, control, self.timeline, self.hooks, self._history, self._contents, defects, process.is_on
        )
        self._read_backs = ReadBacks(torch, control, self.hooks, process.is_on) if control is not None else None
        self._attribution = Attribution(settings.categories, settings.depth, defects)

    def install(self) -> None:
        """Allocates nothing and initializes nothing. REQUIRES: torch is imported."""
        peaks.install(self.torch._C, self.peaks)
        self.hooks.on_backward = self._contents.attribution.backward_called
        self._history.on_script_records = self._script_records
        compiled = Compiled(self.hooks, self.timeline, self._attribution)
        graphs = Graphs(self.torch, self.hooks)
        for part in (self._history, self.hooks, compiled, graphs):
            self._defects.attempt(part.install)

    def start(self) -> None:
        """REQUIRES: CUDA is being initialized in this process."""
        # Attribution starts before the history, which would otherwise contain its look at the allocator.
        parts: list[Callable[[], object]] = [
            self.hooks.device_begins,
            self._attribution.start,
            self._history.start,
            self._oom.install,
        ]
        if self._read_backs is not None:
            parts.append(self._read_backs.install)
        for part in parts:
            self._defects.attempt(part)

    def forked(self) -> None:
        """In a forked child, which is not observed yet."""
        self.hooks.disarm()
        self._defects.attempt(self._attribution.forked)

    def restart(self) -> None:
        """In a forked child that is observed from now on. REQUIRES: the parent has not initialized CUDA, so the parent has not
        observed any device."""
        self._steps = record.StepTexts()
        self.peaks.restart()
        self.timeline.restart()
        self.hooks.restart()

    def finish(self) -> None:
        if self._read_backs is not None:
            self._defects.attempt(self._read_backs.uninstall)
        for part in (self._attribution.finish, self.timeline.close, self._contents.finish):
            self._defects.attempt(part)

    def write_snapshot(self, path: str, error: BaseException | None) -> None:
        if self._history.started:
            at_failure = self._oom.last_snapshot if self._oom.failure(error) else None
            record.write_snapshot(at_failure or self._history.snapshot(), path)

    def fullest_device(self) -> int | None:
        devices = self.peaks.devices
        return max(devices, key=lambda index: (devices[index].reserved_peak, -index)) if devices else None

    def _cut(self) -> Windows:
        windows: Windows = self._defects.attempt_or({}, self.peaks.cut)
        self._defects.attempt(self._contents.at_border)
        self._defects.attempt(self._attribution.at_border, self.timeline.work > 0)
        return windows

    def _script_records(self) -> None:
        self.timeline.flush()
        self._defects.attempt(self._contents.new_stretch)

    def _devices_in_use(self) -> int:
        return self.torch._C._cuda_getDeviceCount() if self.torch.cuda.is_initialized() else 0

    def steps_text(self) -> str:
        timeline = self.timeline
        return self._steps.text(timeline.numbered_steps(), timeline.finished_count, self.fullest_device() or 0)

    def record(self, complete: bool, error: BaseException | None) -> dict[str, Any]:
        attempt_or = self._defects.attempt_or
        result: dict[str, Any] = attempt_or({}, self._memory_record, complete)
        result.update(attempt_or({}, self._work_record))
        result["ooms_handled"] = self._oom.count
        failure = attempt_or(None, self._oom.failure, error) if complete else None
        if failure is not None:
            result["oom"] = {**failure, "top": failure.get("top", [])[: self._settings.top]}
            result["ooms_handled"] = max(self._oom.count - 1, 0)
        return result

    def _memory_record(self, complete: bool) -> dict[str, Any]:
        index = self.fullest_device() or 0
        timeline = self.timeline
        peak = self._peak(index)
        result = written(
            REPORT,
            device=index,
            peak=written(PEAK, **peak),
            finished_steps=timeline.done_steps,
            before_steps=record.step_record(timeline.before, index),
            after_steps=record.step_record(timeline.after, index),
            alloc_retries=self.peaks.devices[index].retries.value if index in self.peaks.devices else 0,
            other_devices=[
                written(OTHER_DEVICE, device=other, reserved=book.reserved_peak)
                for other, book in sorted(self.peaks.devices.items())
                if other != index
            ],
        )
        if complete:
            told = self._defects.attempt_or({}, self._attribution.record, index, peak["active"])
            result["peak"].update(told.pop("peak", {}))
            result.update(told)
        alive = self._contents.alive_at_peak(index) if complete else None
        if alive is not None:
            result.update(written(REPORT, top=alive.groups[: self._settings.top], top_total=alive.active_bytes))
        return result

    def _peak(self, index: int) -> dict[str, Any]:
        """The peak by the short names of document_fields.PEAK."""
        book = self.peaks.devices.get(index) or Device()
        highest = self.timeline.highest.get(index) or Highest()
        device = self._control.memory(index) if self._control is not None else None
        return {
            "active": book.active_peak,
            "allocated": book.allocated_peak,
            "reserved": book.reserved_peak,
            "device": device.peak if device else book.reserved_peak,
            "segments": book.segments_peak,
            "step": highest.step,
            "phase": highest.phase,
            "device_parts": device.peak_parts if device else parts_of(book.reserved_peak, 0, 0, 0),
        }

    def _work_record(self) -> dict[str, Any]:
        known = self._control
        return written(
            REPORT,
            host_pinned=known.host_pinned_peak() if known is not None else 0,
            read_backs=known.read_backs() if known is not None else 0,
            read_back_lines=self._read_backs.lines() if self._read_backs is not None else [],
            unpretended=known.unpretended() if known is not None else [],
        )
