"""Out of memory: the place, and the live allocations at that moment.

The caching allocator calls its observers before it throws. The error is the run's failure if the run ends with it, or if no
allocation, forward, backward or optimizer step follows it. For failures outside that allocator (NCCL, library handles,
cudaMallocAsync), the sources are the error that ends the run and the pretend GPU's last refusal.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from plimsoll.document_fields import OOM, written
from plimsoll.run.contents.contents import Contents
from plimsoll.run.contents.history import History, Snapshot
from plimsoll.run.contents.lines import NO_FRAME, Line, is_user_file, line_or_backward
from plimsoll.run.observe.defects import Defects
from plimsoll.run.observe.hooks import Hooks
from plimsoll.run.observe.phases import Timeline
from plimsoll.run.pretend_control import Control


@dataclass(eq=False)
class Oom:
    _torch: Any
    _control: Control | None
    _timeline: Timeline
    _hooks: Hooks
    _history: History
    _contents: Contents
    _defects: Defects
    _is_on: Callable[[], bool]
    count: int = 0
    last: dict[str, Any] | None = None
    last_snapshot: Snapshot | None = None
    _done_at_last: tuple[int, int] = (0, 0)
    _beside: dict[str, Any] | None = None

    def install(self) -> None:
        attach = getattr(self._torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None:
            return
        try:
            attach(self._observe)
        except RuntimeError:
            pass  # cudaMallocAsync and pluggable allocators have no observers: `failure` then uses the error itself.

    def _observe(self, device: int, requested: int, total: int, free: int) -> None:
        if not self._is_on():
            return
        try:
            self._note(device, requested, total, free)
        except Exception as error:  # The allocator is about to throw: this error must not replace its error.
            known = written(OOM, requested=requested, device_free=free, device_total=total, phase=self._timeline.phase)
            self.last = {"device": device, **known}
            self._defects.note(f"Oom: {error!r}")

    def _note(self, device: int, requested: int, total: int, free: int) -> None:
        self.count += 1
        self._done_at_last = self._done(device)
        self._hooks.arm()  # If the script tries again, its forward must be seen.
        line = line_or_backward(sys._getframe(), self._hooks.backward_line if self._timeline.in_backward else None)
        self.last = self._describe(device, requested, total, free, line)
        self._add_live_allocations(self.last, device)

    def _add_live_allocations(self, failure: dict[str, Any], device: int) -> None:
        if self._history.started:
            self.last_snapshot = self._history.snapshot()
            failure["top"] = self._contents.of_snapshot(self.last_snapshot, device).groups

    def _describe(self, device: int, requested: int, total: int, free: int, line: Line) -> dict[str, Any]:
        active, reserved = self._active_and_reserved(device)
        book = self._control.memory(device) if self._control is not None else None
        values = written(
            OOM,
            requested=requested,
            device_free=free,
            device_total=total,
            step=self._timeline.step,
            phase=self._timeline.phase,
            active=active,
            reserved=reserved,
            device_parts=book.parts if book is not None else None,
        )
        return {"device": device, **values, **line.as_record()}

    def _active_and_reserved(self, device: int) -> tuple[int, int]:
        try:
            stats = self._torch._C._cuda_memoryStats(device)
        except RuntimeError:  # a pluggable allocator keeps no statistics
            return 0, 0
        return stats["active_bytes"]["all"]["current"], stats["reserved_bytes"]["all"]["current"]

    def _done(self, device: int) -> tuple[int, int]:
        stats = self._torch._C._cuda_memoryStats(device)
        return self._timeline.work, stats["allocation"]["all"]["allocated"]

    def failure(self, error: BaseException | None) -> dict[str, Any] | None:
        """The out-of-memory error that ended the run, if any."""
        seen = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            # If this process used no GPU, the error came from another process, which has it in its own record.
            if self._is_out_of_memory(error) and self._torch.cuda.is_initialized():
                seen_by_allocator = self.last if isinstance(error, self._torch.cuda.OutOfMemoryError) else None
                return {**(seen_by_allocator or self._beside_the_allocator(error)), "message": str(error)}
            error = error.__cause__ or error.__context__
        if self.last is not None and self._done(self.last.get("device", 0)) == self._done_at_last:
            return {**self.last, "message": "caught by the script, which did not train further"}
        return None

    def _is_out_of_memory(self, error: BaseException) -> bool:
        if isinstance(error, self._torch.cuda.OutOfMemoryError):
            return True
        # Libraries and the driver have their own messages. Without a refusal by the pretend GPU, the message has another cause.
        in_words = isinstance(error, RuntimeError) and _IN_WORDS.search(str(error)) is not None
        return in_words and (self._control is None or self._refusing_device() is not None)

    def _refusing_device(self) -> int | None:
        control = self._control
        if control is None:
            return None
        current = self._torch.cuda.current_device()
        others = (device for device in range(control.device_count()) if device != current)
        return next((device for device in (current, *others) if control.refusal(device) is not None), None)

    def _beside_the_allocator(self, error: BaseException) -> dict[str, Any]:
        if self._beside is None:
            self._beside = self._describe_beside(error)
            self.count += 1
        return self._beside

    def _describe_beside(self, error: BaseException) -> dict[str, Any]:
        device = self._refusing_device()
        if device is None:
            device = self._torch.cuda.current_device()
        free, total = self._torch.cuda.mem_get_info(device)
        refusal = self._control.refusal(device) if self._control is not None else None
        stated = _Stated.of(str(error))
        if refusal is not None and stated is not None and not stated.may_be(refusal.asked):
            refusal = None  # An older refusal. This time torch itself refused: the script had set a limit.
        requested = refusal.asked if refusal is not None else stated.bytes if stated is not None else 0
        failure = self._describe(device, requested, total, free, _raised_at(error) or NO_FRAME)
        if refusal is not None:
            free = total - sum(refusal.parts.values())
            failure.update(written(OOM, device_parts=refusal.parts, device_free=free))
        self._add_live_allocations(failure, device)
        return failure


_IN_WORDS = re.compile("out of memory|ALLOC(ATION)?_FAILED")


class _Stated(NamedTuple):
    """The request in an allocator's message, which has two decimals."""

    bytes: int
    unit: int

    @classmethod
    def of(cls, message: str) -> "_Stated | None":
        found = re.search(r"(?:Requested *:|Tried to allocate) *([0-9.]+) (bytes|KiB|MiB|GiB)", message)
        if found is None:
            return None
        unit = 1024 ** ("bytes", "KiB", "MiB", "GiB").index(found[2])
        return cls(round(float(found[1]) * unit), unit)

    def may_be(self, size: int) -> bool:
        return abs(self.bytes - size) <= self.unit / 100


def _raised_at(error: BaseException) -> Line | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_user_file(code.co_filename):
            line = Line(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return line
