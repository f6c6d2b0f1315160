"""Puts the parts together: what is watched in one process, and when its record is written."""

import atexit
import os
import platform
import sys
import time
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from plimsoll.run import control, record, snapshot, user_view
from plimsoll.run.after_import import after_import
from plimsoll.run.compiled import Compiled
from plimsoll.run.contents import MAX_ENTRIES, Contents
from plimsoll.run.graphs import Graphs
from plimsoll.run.history import History
from plimsoll.run.hooks import Hooks
from plimsoll.run.oom import Oom
from plimsoll.run.peaks import Peaks, Windows
from plimsoll.run.phases import Timeline
from plimsoll.run.progress import Progress
from plimsoll.run.readbacks import ReadBacks
from plimsoll.run.settings import Settings
from plimsoll.run.stop import EnoughSteps, Stop


class Observer:
    """Of one process. It waits for the script to import torch, watches, and writes its record when the process ends.

    A forked child is not watched: it writes nothing and shows nothing.
    """

    def __init__(self, settings: Settings, script: str) -> None:
        self._settings = settings
        self._script = script
        self._pid = os.getpid()
        self._began = time.monotonic()
        self._import_seconds = 0.0
        self._torch: Optional[Any] = None
        self._control: Optional[control.Control] = None
        self._error: Optional[BaseException] = None
        self._ended: Optional[float] = None
        self._defects: List[str] = []
        self._steps = record.StepTexts()
        self._stop = Stop(settings.steps)
        self._progress = Progress(settings.progress and settings.is_main)

    def wait_for_torch(self) -> None:
        if not self._settings.without_control:
            self._control = control.load()
        os.register_at_fork(after_in_child=self._forked)
        # Registered first, it runs last: after the script's own functions, and after threads that outlive the script.
        atexit.register(self._write_all)
        after_import.call("torch", self._torch_imported, before=self._torch_import_begins)

    def ended(self, error: Optional[BaseException]) -> None:
        """The script is over; threads and atexit functions of its may still run."""
        self._ended = time.monotonic()
        self._error = error
        self._progress.clear()

    def is_on(self) -> bool:
        return self._pid == os.getpid()

    # -- installing ------------------------------------------------------------------------------------------------------

    def _torch_import_begins(self) -> None:
        self._import_began = time.monotonic()

    def _torch_imported(self, torch: ModuleType) -> None:
        self._import_seconds = time.monotonic() - self._import_began
        if not hasattr(torch._C, "_cuda_memoryStats"):
            return  # not a CUDA build
        self._torch = torch
        self._peaks = Peaks(torch._C._cuda_memoryStats, torch._C._cuda_resetPeakMemoryStats, self._devices_in_use)
        user_view.install(torch._C, self._peaks)
        self._timeline = Timeline(self._cut, self._step_done, self._stop.check)
        self._hooks = Hooks(torch, self._timeline, self.is_on)
        keep_all = self._settings.snapshot is not None and self._settings.is_main
        self._history = History(torch, MAX_ENTRIES, "all" if keep_all else "alloc")
        self._contents = Contents(self._history, self._peaks, keep_all, torch.cuda.is_current_stream_capturing)
        self._hooks.on_backward = self._contents.attribution.backward_called
        self._oom = Oom(torch, self._timeline, self._hooks, self._history, self._contents, self.is_on)
        self._read_backs: Optional[ReadBacks] = None
        self._history.install()
        self._hooks.install()
        Compiled(self._hooks, self._timeline).install()
        Graphs(torch, self._hooks).install()
        # Without device work there is nothing to watch yet: the rest waits until CUDA is initialised.
        torch.cuda._lazy_call(self._cuda_initialised)
        if "RANK" in os.environ:
            from plimsoll.run import lone_rank

            lone_rank.install()

    def _cuda_initialised(self) -> None:
        if not self.is_on():
            return
        self._history.start()
        self._guarded(self._oom.install)
        if self._control is not None:
            self._read_backs = ReadBacks(self._torch, self._control, self._hooks, self.is_on)
            self._read_backs.install()

    def _devices_in_use(self) -> int:
        assert self._torch is not None
        return self._torch._C._cuda_getDeviceCount() if self._torch.cuda.is_initialized() else 0

    def _forked(self) -> None:
        self._progress.turn_off()
        if self._torch is not None:
            self._hooks.disarm()

    # -- while it runs ---------------------------------------------------------------------------------------------------

    def _cut(self) -> Windows:
        windows = self._peaks.cut()
        self._contents.at_border()
        return windows

    def _step_done(self) -> None:
        device = self._fullest_device()
        if device is None:
            return
        book = self._peaks.devices[device]
        self._progress.show(self._timeline.done_steps, book.active_peak, book.reserved_peak)
        self._write(complete=False)

    def _fullest_device(self) -> Optional[int]:
        devices = self._peaks.devices
        return max(devices, key=lambda index: (devices[index].reserved_peak, -index)) if devices else None

    # -- the record ------------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        if not self.is_on():
            return
        self._progress.clear()
        if self._torch is not None:
            for part in (self._end_read_backs, self._timeline.close, self._contents.finish):
                self._guarded(part)
        if self._settings.is_main or (self._torch is not None and self._peaks.devices):
            self._write(complete=True)
        if self._settings.snapshot and self._settings.is_main and self._torch is not None and self._history.started:
            at_failure = self._oom.last_snapshot if self._oom.failure(self._error) else None
            snapshot.write(at_failure or self._history.snapshot(), self._settings.snapshot)

    def _end_read_backs(self) -> None:
        if self._read_backs is not None:
            self._read_backs.uninstall()

    def _guarded(self, part: Callable[[], None]) -> None:
        """What one part failed to see must not cost what the others saw: the record names it."""
        try:
            part()
        except Exception as error:
            self._defects.append(f"{getattr(part, '__qualname__', part)}: {error!r}")

    def _write(self, complete: bool) -> None:
        steps = "[]"
        if self._torch is not None:
            timeline = self._timeline
            steps = self._steps.text(timeline.numbered_steps(), timeline.finished_count, self._fullest_device() or 0)
        record.write(self._settings.record_dir, self._record(complete), steps)

    def _record(self, complete: bool) -> Dict[str, Any]:
        is_main = self._settings.is_main
        result: Dict[str, Any] = {
            "version": record.VERSION,
            "complete": complete,
            "pid": self._pid,
            "main": is_main,
            "torch": self._torch.__version__ if self._torch is not None else None,
            "python": platform.python_version(),
            "script": self._script,
            "world_size": int(os.environ.get("WORLD_SIZE", "1")),
            "rank": int(os.environ.get("RANK", "0")),
            "error": self._error_record(),
            "exit_code": self._exit_code(),
            "seconds": round((self._ended or time.monotonic()) - self._began - self._import_seconds, 3),
            "stopped_after_steps": self._stop.stopped,
            "defects": self._defects,
        }
        if self._torch is None:
            return {**result, **_NOTHING_SEEN}
        return {**result, **self._memory_record(complete), **self._work_record()}

    def _memory_record(self, complete: bool) -> Dict[str, Any]:
        device = self._fullest_device()
        index = device if device is not None else 0
        timeline = self._timeline
        result: Dict[str, Any] = {
            "device": index,
            "peak": self._peak_record(index),
            "finished_steps": timeline.done_steps,
            "before_steps": record.phases_record(timeline.before, index),
            "after_steps": record.phases_record(timeline.after, index),
            "top": [],
            "top_total_bytes": 0,
            "other_devices": [
                {"device": other, "reserved_peak_bytes": book.reserved_peak}
                for other, book in sorted(self._peaks.devices.items())
                if other != index
            ],
        }
        alive = self._contents.alive_at_peak(index) if complete else None
        if alive is not None:
            result["top"] = alive.groups[: self._settings.top]
            result["top_total_bytes"] = alive.active_bytes
        failure = self._oom.failure(self._error) if complete else None
        if failure is not None:
            failure["top"] = failure["top"][: self._settings.top]
        result["oom"] = failure
        result["ooms_handled"] = self._oom.count - (1 if failure is not None and self._oom.count else 0)
        return result

    def _peak_record(self, index: int) -> Dict[str, Any]:
        book = self._peaks.devices.get(index)
        highest = self._timeline.highest.get(index)
        result: Dict[str, Any] = {
            "active_bytes": book.active_peak if book else 0,
            "allocated_bytes": book.allocated_peak if book else 0,
            "reserved_bytes": book.reserved_peak if book else 0,
            "segments": book.segments_peak if book else 0,
            "step": highest.step if highest else None,
            "phase": highest.phase if highest else "other",
        }
        device = self._control.memory(index) if self._control is not None else None
        if device is None:
            parts = {"segments": result["reserved_bytes"], "context": 0, "nccl": 0, "handles": 0}
            return {**result, "device_bytes": result["reserved_bytes"], "device_parts": parts}
        parts = {
            "segments": device.segments_peak,
            "context": device.context_peak,
            "nccl": device.nccl_peak,
            "handles": device.handles_peak,
        }
        return {**result, "device_bytes": device.peak, "device_parts": parts}

    def _work_record(self) -> Dict[str, Any]:
        known = self._control
        lines: List[Dict[str, Any]] = self._read_backs.lines() if self._read_backs is not None else []
        return {
            "host_pinned_bytes": known.host_pinned_peak() if known is not None else 0,
            "read_backs": known.read_backs() if known is not None else 0,
            "read_back_lines": lines,
            "unpretended": known.unpretended() if known is not None else [],
        }

    def _error_record(self) -> Optional[Dict[str, str]]:
        if self._error is None or isinstance(self._error, SystemExit):
            return None
        return {"type": type(self._error).__name__, "message": str(self._error)}

    def _exit_code(self) -> int:
        error = self._error
        if error is None or isinstance(error, EnoughSteps):
            return 0
        if isinstance(error, SystemExit):
            code = error.code
            return 0 if code is None else code if isinstance(code, int) else 1
        return 130 if isinstance(error, KeyboardInterrupt) else 1


_NOTHING_SEEN: Dict[str, Any] = {
    "device": 0,
    "peak": {
        **dict.fromkeys(("active_bytes", "allocated_bytes", "reserved_bytes", "device_bytes", "segments"), 0),
        "step": None,
        "phase": "other",
        "device_parts": dict.fromkeys(("segments", "context", "nccl", "handles"), 0),
    },
    "finished_steps": 0,
    "before_steps": None,
    "after_steps": None,
    "top": [],
    "top_total_bytes": 0,
    "host_pinned_bytes": 0,
    "read_backs": 0,
    "read_back_lines": [],
    "unpretended": [],
    "oom": None,
    "ooms_handled": 0,
    "other_devices": [],
}
