"""The progress line: one line that is redrawn on a terminal. Not shown anywhere else."""

import os
import sys
import time
from typing import Any, TextIO

from plimsoll.amounts import text_of

_INTERVAL_SECONDS = 0.1
_ERASE = "\r\x1b[K"


class Progress:
    """Between two drawings the terminal belongs to the script: its output first erases the progress line.

    So the standard streams have a replaced `write`, only while a line is drawn. C++ code and other processes do not use these
    streams; their output overwrites the line.
    """

    def __init__(self, wanted: bool, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.__stderr__
        self._on = bool(wanted and _is_terminal(self._stream) and os.environ.get("TERM") != "dumb")
        self._drawn = False
        self._last = 0.0
        self._watched: list[TextIO] = []

    def show(self, steps: int, active_peak: int, reserved_peak: int) -> None:
        now = time.monotonic()
        if not self._on or now - self._last < _INTERVAL_SECONDS:
            return
        self.clear()
        self._last, self._drawn = now, True
        text = f"step {steps}   peak: active {text_of(active_peak)}, reserved {text_of(reserved_peak)}"
        self._write(f"{_ERASE}\x1b[2m{text[: self._room()]}\x1b[0m\r")
        self._watch_streams()

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._leave_streams()
            self._write(_ERASE)

    def turn_off(self) -> None:
        """In a forked child: the line belongs to the parent."""
        self._leave_streams()
        self._on = self._drawn = False

    def _room(self) -> int | None:
        """The number of characters in one row: a wrapped line could not be erased."""
        assert self._stream is not None
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            return None
        return columns - 1 if columns > 1 else None  # 0: the terminal does not know

    def _watch_streams(self) -> None:
        for stream in {id(stream): stream for stream in (sys.__stdout__, sys.__stderr__, self._stream)}.values():
            # If the script replaced `write` of a stream, the stream stays unchanged.
            own = "write" in getattr(stream, "__dict__", {"write": None})
            if stream is not None and _is_terminal(stream) and not own:
                stream.write = _Erasing(self, stream)  # type: ignore[method-assign]
                self._watched.append(stream)

    def _leave_streams(self) -> None:
        watched, self._watched = self._watched, []
        for stream in watched:
            if isinstance(vars(stream).get("write"), _Erasing):
                del stream.write

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._on = False


class _Erasing:
    """Replaces a stream's `write` until its first call, which erases the line, restores the stream and writes the text."""

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress = progress
        self._write = stream.write

    def __call__(self, text: Any) -> int:
        self._progress.clear()
        return self._write(text)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
