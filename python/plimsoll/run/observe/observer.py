"""The life of one observed process: its start, its end, and the moments at which its record is written."""

import atexit
import os
import platform
import signal
import sys
import time
from types import ModuleType
from typing import Any

from plimsoll import autograd_threads
from plimsoll.document_fields import VERSION
from plimsoll.run import pretend_control, record
from plimsoll.run.observe.defects import Defects
from plimsoll.run.observe.progress import Progress
from plimsoll.run.observe.session import Session
from plimsoll.run.process import processes
from plimsoll.run.process.stop import EnoughSteps, Stop
from plimsoll.run.settings import Settings, number_in_environment
from plimsoll.run.torch_patches import foreach_sharding, redirect_ctypes
from plimsoll.run.torch_patches.after_import import after_import
from plimsoll.run.torch_patches.late_compiler import LateCompiler
from plimsoll.run.values import host_values


class Observer:
    """Waits until the script imports torch, opens a session, and writes the record when the process ends.

    A forked child is not observed: it writes and shows nothing. But if it initializes CUDA, which works only if its parent
    has not, it does the training. Then it becomes an observed process itself.
    """

    def __init__(self, settings: Settings, script: str) -> None:
        self._settings = settings
        self._script = script
        self._control: pretend_control.Control | None = None
        self._lone_rank: ModuleType | None = None
        self._session: Session | None = None
        self._stop = Stop(settings.steps)
        self._progress = Progress(settings.progress and settings.is_main)
        self._defects = Defects()
        # Read now: the script may change these variables later.
        self._world_size, self._rank = number_in_environment("WORLD_SIZE", 1), number_in_environment("RANK", 0)
        self._take_this_process()

    def _take_this_process(self) -> None:
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
            self._control = pretend_control.load()
        if os.environ.get("PLIMSOLL_PRETEND_DIR"):
            redirect_ctypes.install(os.environ["PLIMSOLL_PRETEND_DIR"])
        os.register_at_fork(after_in_child=self._forked)
        # Registered first, so it runs last: after the script's own functions and after its threads.
        atexit.register(self._write_all)
        if self._settings.is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)
        after_import.call("multiprocessing.util", lambda util: processes.install(util, self.ended, self._child_over))
        after_import.call("torch", self._torch_imported, before=self._torch_import_begins)

    def ended(self, error: BaseException | None) -> None:
        """The script has ended. Its threads and atexit functions may still run."""
        self._ended = time.monotonic()
        self._error = error
        self._progress.clear()

    def is_on(self) -> bool:
        return self._pid == os.getpid()

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
        session = Session(torch, self._control, self._settings, self._defects, self)
        session.install()
        self._session = session
        LateCompiler().install()
        foreach_sharding.install()
        host_values.install(self._control, self._defects)
        # There is nothing to observe before the first device work, so the rest waits until CUDA is initialized.
        torch.cuda._lazy_call(self._cuda_initialized)

    def _cuda_initialized(self) -> None:
        assert self._session is not None
        if not self.is_on():
            self._take_this_process()
            self._is_forked = True
            self._session.restart()
        self._session.start()

    def _forked(self) -> None:
        self._progress.turn_off()
        if self._session is not None:
            self._session.forked()

    def step_done(self) -> None:
        self._defects.attempt(self._show_and_write)

    def check_stop(self, finished_steps: int) -> None:
        self._stop.check(finished_steps)

    def _show_and_write(self) -> None:
        session = self._session
        device = session.fullest_device() if session is not None else None
        if session is None or device is None:
            return
        book = session.peaks.devices[device]
        self._progress.show(session.timeline.done_steps, book.active_peak, book.reserved_peak)
        self._write(complete=False)

    def _child_over(self) -> None:
        # A forked child of multiprocessing ends without atexit; a spawned child runs it.
        if self._is_forked:
            self._write_all()

    def _terminated(self, number: int, _frame: object) -> None:
        """SIGTERM ends the process as usual, but after its record is written. A forked child has no record of its own."""
        signal.signal(number, signal.SIG_DFL)
        self._write_all()
        os.kill(os.getpid(), number)

    def _write_all(self) -> None:
        if self.is_on():
            self._defects.attempt(self._finish)

    def _finish(self) -> None:
        self._progress.clear()
        is_main, session = self._settings.is_main, self._session
        if self._error is None and not is_main:
            # No code of ours catches exceptions in child processes, but the interpreter keeps the last one.
            self._error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if session is not None:
            session.finish()
            if is_main and self._settings.snapshot:
                self._defects.attempt(session.write_snapshot, self._settings.snapshot, self._error)
        if is_main or (session is not None and session.peaks.devices):
            self._write(complete=True)
        if self._lone_rank is not None:
            self._lone_rank.script_ended()
        autograd_threads.wait()

    def _write(self, complete: bool) -> None:
        seen: dict[str, Any] = {}
        steps = "[]"
        if self._session is not None:
            seen = self._session.record(complete, self._error)
            steps = self._defects.attempt_or("[]", self._session.steps_text)
        record.write(self._settings.record_dir, {**self._process_record(complete), **seen}, steps)

    def _process_record(self, complete: bool) -> dict[str, Any]:
        return {
            "version": VERSION,
            "command": "run",
            "complete": complete,
            "pid": self._pid,
            "main": self._settings.is_main,
            "torch": str(self._session.torch.__version__) if self._session is not None else None,
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
