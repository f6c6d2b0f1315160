"""Running out of memory: where, and what was alive at that moment.

The allocator tells its observers before it throws. Whether the script deals with it is only known later: the failure is
what the run ends with, or what neither an allocation nor a forward, backward or optimizer step came after; all others were
handled.
"""

import sys
from typing import Any, Callable, Dict, Optional, Tuple

from plimsoll.run.contents import Contents
from plimsoll.run.defects import Defects
from plimsoll.run.history import History, Snapshot
from plimsoll.run.hooks import Hooks
from plimsoll.run.lines import NO_FRAME, Line, is_user_file, line_or_backward
from plimsoll.run.phases import Timeline


class Oom:
    def __init__(
        self,
        torch: Any,
        timeline: Timeline,
        hooks: Hooks,
        history: History,
        contents: Contents,
        defects: Defects,
        is_on: Callable[[], bool],
    ) -> None:
        self._torch = torch
        self._timeline = timeline
        self._hooks = hooks
        self._history = history
        self._contents = contents
        self._defects = defects
        self._is_on = is_on
        self.count = 0
        self._done_at_last: Tuple[int, int] = (0, 0)
        self.last: Optional[Dict[str, Any]] = None
        self.last_snapshot: Optional[Snapshot] = None

    def install(self) -> None:
        attach = getattr(self._torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None:
            return
        try:
            attach(self._observe)
        except RuntimeError:
            pass  # cudaMallocAsync and pluggable allocators tell nobody: `failure` then goes by the error itself

    def _observe(self, device: int, requested: int, total: int, free: int) -> None:
        if not self._is_on():
            return
        try:
            self._note(device, requested, total, free)
        except Exception as error:  # the allocator is about to throw its own; ours must not take its place
            book = {"device_free_bytes": free, "device_total_bytes": total, "phase": self._timeline.phase, "top": []}
            self.last = {"device": device, "requested_bytes": requested, **book, "message": ""}
            self._defects.note(f"Oom: {error!r}")

    def _note(self, device: int, requested: int, total: int, free: int) -> None:
        self.count += 1
        self._done_at_last = self._done(device)
        self._hooks.arm()  # should the script try once more, its forward is seen
        line = line_or_backward(sys._getframe(), self._hooks.backward_line if self._timeline.in_backward else None)
        self.last = self._describe(device, requested, total, free, line)
        if self._history.started:
            self.last_snapshot = self._history.snapshot()
            self.last["top"] = self._contents.of_snapshot(self.last_snapshot, device).groups

    def _describe(self, device: int, requested: int, total: int, free: int, line: Line) -> Dict[str, Any]:
        stats = self._torch._C._cuda_memoryStats(device)
        return {
            "device": device,
            "requested_bytes": requested,
            "device_free_bytes": free,
            "device_total_bytes": total,
            "step": self._timeline.step,
            "phase": self._timeline.phase,
            **line.as_record(),
            "active_bytes": stats["active_bytes"]["all"]["current"],
            "reserved_bytes": stats["reserved_bytes"]["all"]["current"],
            "message": "",
            "top": [],
        }

    def _done(self, device: int) -> Tuple[int, int]:
        stats = self._torch._C._cuda_memoryStats(device)
        return self._timeline.work, stats["allocation"]["all"]["allocated"]

    def failure(self, error: Optional[BaseException]) -> Optional[Dict[str, Any]]:
        """What the run died of, if it was this."""
        seen = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            # What a process that used no GPU tells of one that did is in the other's record.
            if self._is_out_of_memory(error) and self._torch.cuda.is_initialized():
                failure = dict(self.last) if self.last is not None else self._beside_the_allocator(error)
                failure["message"] = str(error)
                return failure
            error = error.__cause__ or error.__context__
        if self.last is not None and self._done(self.last.get("device", 0)) == self._done_at_last:
            return {**self.last, "message": "caught by the script, which trained no further"}
        return None

    def _is_out_of_memory(self, error: BaseException) -> bool:
        if isinstance(error, self._torch.cuda.OutOfMemoryError):
            return True
        # Libraries and the driver refuse in their own words.
        return isinstance(error, RuntimeError) and "out of memory" in str(error)

    def _beside_the_allocator(self, error: BaseException) -> Dict[str, Any]:
        device = self._torch.cuda.current_device()
        free, total = self._torch.cuda.mem_get_info(device)
        return self._describe(device, 0, total, free, _raised_at(error) or NO_FRAME)


def _raised_at(error: BaseException) -> Optional[Line]:
    trace, line = error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_user_file(code.co_filename):
            line = Line(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return line
