"""Read-backs, whose values are zeros: their number, their lines, and whether they decide a shape.

`decided_shape` is True if the operator's output shape depends on values (nonzero, unique, masked_select, …), or if the
function that reads the value uses it as a size (`shape_use`). It is False if neither is known.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from plimsoll.run.contents.lines import Line, line_or_backward
from plimsoll.run.contents.native_stack import NativeStack
from plimsoll.run.observe.hooks import Hooks
from plimsoll.run.pretend_control import Control
from plimsoll.run.values.shape_use import read_decides_shape


@dataclass
class _Place:
    op: str | None
    decided_shape: bool
    count: int = 0
    bytes: int = 0


class ReadBacks:
    """Counts read-backs by place. Reads the native stack only once per place, because that takes up to a millisecond."""

    def __init__(self, torch: Any, control: Control, hooks: Hooks, is_on: Callable[[], bool]) -> None:
        self._torch = torch
        self._control = control
        self._hooks = hooks
        self._is_on = is_on
        self._native = NativeStack()
        self._places: dict[tuple[Line, Any], _Place] = {}
        self._inside = threading.local()
        self._lock = threading.Lock()

    def install(self) -> None:
        self._control.on_read_back(self._read)

    def uninstall(self) -> None:
        self._control.on_read_back(None)

    def _read(self, device: int, size: int) -> None:
        if not self._is_on() or getattr(self._inside, "here", False):
            return
        self._inside.here = True
        try:
            self._note(size)
        except Exception:  # A ctypes callback could only print it.
            pass
        finally:
            self._inside.here = False

    def _note(self, size: int) -> None:
        # The caller's frame: a frame that refers to itself is a cycle and keeps the locals of all callers alive.
        frame = sys._getframe(1)
        line = line_or_backward(frame, self._hooks.backward_line)
        key = (line, _instruction(frame))
        place = self._places.get(key)
        if place is None:
            looked = self._look(line)
        with self._lock:
            if place is None:
                place = self._places.setdefault(key, looked)
            place.count += 1
            place.bytes += size

    def _look(self, line: Line) -> _Place:
        operators = self._native.operators()
        shaping = [name for name in operators if self._has_dynamic_shape(name)]
        if shaping:
            return _Place(f"aten::{shaping[-1]}", True)
        op = f"aten::{operators[-1]}" if operators else None
        return _Place(op, bool(line.file) and read_decides_shape(line.file, line.line))

    def _has_dynamic_shape(self, name: str) -> bool:
        packet = getattr(self._torch.ops.aten, name.rsplit("_out", 1)[0] if name.endswith("_out") else name, None)
        if packet is None:
            return False
        tag = self._torch.Tag.dynamic_output_shape
        return any(tag in getattr(packet, overload).tags for overload in packet.overloads())

    def lines(self) -> list[dict[str, Any]]:
        """One entry for each line and operator, the most frequent first."""
        merged: dict[tuple[Line, str | None, bool], list[int]] = {}
        for (line, _), place in list(self._places.items()):
            entry = merged.setdefault((line, place.op, place.decided_shape), [0, 0])
            entry[0] += place.count
            entry[1] += place.bytes
        ordered = sorted(merged.items(), key=lambda item: (-item[1][0], item[0][0]))
        return [
            {**line.as_record(), "count": count, "bytes": size, "op": op, "decided_shape": decided}
            for (line, op, decided), (count, size) in ordered
        ]


def _instruction(frame: Any) -> tuple[CodeType, int] | None:
    """The caller's position in its byte code, because one line may have two reads."""
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti) if frame is not None else None
