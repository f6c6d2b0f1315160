"""The progress line: one line on a terminal, redrawn; nothing anywhere else."""

import sys
import time
from typing import Optional, TextIO

_INTERVAL_SECONDS = 0.1


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.2f} GiB"


class Progress:
    def __init__(self, wanted: bool, stream: Optional[TextIO] = None) -> None:
        self._stream = stream if stream is not None else sys.__stderr__
        self._on = bool(wanted and self._stream is not None and self._stream.isatty())
        self._drawn = False
        self._last = 0.0

    def show(self, steps: int, active_peak: int, reserved_peak: int) -> None:
        now = time.monotonic()
        if not self._on or now - self._last < _INTERVAL_SECONDS:
            return
        self._last, self._drawn = now, True
        text = f"step {steps}   peak: active {_gib(active_peak)}, reserved {_gib(reserved_peak)}"
        # The cursor goes back to the start: what the script prints next takes the line's place.
        self._write(f"\r\x1b[K\x1b[2m{text}\x1b[0m\r")

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write("\r\x1b[K")

    def turn_off(self) -> None:
        """In a forked child: the line is the parent's."""
        self._on = self._drawn = False

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._on = False
