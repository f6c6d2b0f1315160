"""One process: when it is watched, how it ended, and when its record is written."""

import atexit
import os
import platform
import sys
import time
from types import ModuleType
from typing import Any

from plimsoll import autograd_threads
from plimsoll.run import control, record
from plimsoll.run.observe.defects import Defects
from plimsoll.run.observe.progress import Progress
from plimsoll.run.observe.session import NOTHING_SEEN, Watch
from plimsoll.run.process import processes
from plimsoll.run.process.stop import EnoughSteps, Stop
from plimsoll.run.settings import Settings
from plimsoll.run.torch_patches import foreach_sharding, redirect_ctypes
from plimsoll.run.torch_patches.after_import import after_import
from plimsoll.run.torch_patches.late_compiler import LateCompiler
from plimsoll.run.values import host_values


class Observer:
    """It waits for the script to import torch, watches, and writes its record when the process ends.

    A forked child is not watched: it writes nothing and shows nothing. Where it is the one that initialises CUDA, which
    only works if its parent has not, it does the training, and becomes a watched process of its own.
    """

    def __init__(self, settings: Settings, script: str) -> None:
        self._settings = settings
        self._script = script
        self._control: control.Control | None = None
        self._lone_rank: ModuleType | None = None
        self._watch: Watch | None = None
        self._stop = Stop(settings.steps)
        self._progress = Progress(settings.progress and settings.is_main)
        self._defects = Defects()
        # Once, and now: the script may set them to anything later.
        self._world_size, self._rank = _number("WORLD_SIZE", 1), _number("RANK", 0)
        self._watch_this_process()

    def _watch_this_process(self) -> None:
        self._pid = os.getpid()
        self._began = time.monotonic()
        self._import_seconds = 0.0
        self._error: BaseException | None = None
        self._ended: float | None = None
        self._is_forked = False
        self._stop.stopped = False
        self._defects.texts.clear()

    def wait_for_torch(self) -> None:
        if not self._settings.without_control:
            self._control = control.load()
        if os.environ.get("PLIMSOLL_PRETEND_DIR"):
            redirect_ctypes.install(os.environ["PLIMSOLL_PRETEND_DIR"])
        os.register_at_fork(after_in_child=self._forked)
        # Registered first, it runs last: after the script's own functions, and after threads that outlive the script.
        atexit.register(self._write_all)
        after_import.call("multiprocessing.util", lambda util: processes.install(util, self.ended, self._child_over))
        after_import.call("torch", self._torch_imported, before=self._torch_import_begins)

    def ended(self, error: BaseException | None) -> None:
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
        self._defects.attempt(self._install, torch)
        if "RANK" in os.environ:
            from plimsoll.run import lone_rank

            lone_rank.install()
            self._lone_rank = lone_rank

    def _install(self, torch: Any) -> None:
        if not hasattr(torch._C, "_cuda_memoryStats"):
            return  # not a CUDA build
        watch = Watch(
            torch, self._control, self._settings, self._defects, self.is_on, self._step_done, self._stop.check
        )
        watch.install()
        self._watch = watch
        LateCompiler().install()
        foreach_sharding.install()
        host_values.install(self._control, self._defects)
        # Without device work there is nothing to watch yet: the rest waits until CUDA is initialised.
        torch.cuda._lazy_call(self._cuda_initialised)

    def _cuda_initialised(self) -> None:
        assert self._watch is not None
        if not self.is_on():
            self._watch_this_process()
            self._is_forked = True
            self._watch.restart()
        self._watch.start()

    def _forked(self) -> None:
        self._progress.turn_off()
        if self._watch is not None:
            self._watch.forked()

    # -- while it runs ---------------------------------------------------------------------------------------------------

    def _step_done(self) -> None:
        self._defects.attempt(self._show_and_write)

    def _show_and_write(self) -> None:
        watch = self._watch
        device = watch.fullest_device() if watch is not None else None
        if watch is None or device is None:
            return
        book = watch.peaks.devices[device]
        self._progress.show(watch.timeline.done_steps, book.active_peak, book.reserved_peak)
        self._write(complete=False)

    # -- the record ------------------------------------------------------------------------------------------------------

    def _child_over(self) -> None:
        # A forked child of multiprocessing's leaves without atexit; a spawned one does not.
        if self._is_forked:
            self._write_all()

    def _write_all(self) -> None:
        if self.is_on():
            self._defects.attempt(self._finish)

    def _finish(self) -> None:
        self._progress.clear()
        is_main, watch = self._settings.is_main, self._watch
        if self._error is None and not is_main:
            # Nobody stands around what such a process runs; the interpreter keeps what it died of.
            self._error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if watch is not None:
            watch.finish()
            if is_main and self._settings.snapshot:
                self._defects.attempt(watch.write_snapshot, self._settings.snapshot, self._error)
        if is_main or (watch is not None and watch.peaks.devices):
            self._write(complete=True)
        if self._lone_rank is not None:
            self._lone_rank.script_ended()
        autograd_threads.wait()

    def _write(self, complete: bool) -> None:
        seen, steps = NOTHING_SEEN, "[]"
        if self._watch is not None:
            seen = self._watch.record(complete, self._error)
            steps = self._defects.attempt_or("[]", self._watch.steps_text)
        record.write(self._settings.record_dir, {**self._process_record(complete), **seen}, steps)

    def _process_record(self, complete: bool) -> dict[str, Any]:
        return {
            "version": record.VERSION,
            "complete": complete,
            "pid": self._pid,
            "main": self._settings.is_main,
            "torch": str(self._watch.torch.__version__) if self._watch is not None else None,
            "python": platform.python_version(),
            "script": self._script,
            "world_size": self._world_size,
            "rank": self._rank,
            "error": self._error_record(),
            "exit_code": self._exit_code(),
            "seconds": round((self._ended or time.monotonic()) - self._began - self._import_seconds, 3),
            "stopped_after_steps": self._stop.stopped,
            "defects": self._defects.texts,
        }

    def _error_record(self) -> dict[str, str] | None:
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


def _number(variable: str, otherwise: int) -> int:
    try:
        return int(os.environ.get(variable, ""))
    except ValueError:
        return otherwise
