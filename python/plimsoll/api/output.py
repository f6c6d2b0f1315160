"""Where the child's prints go: to the caller's streams, or into the result."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import BinaryIO, TextIO

_PATIENCE_SECONDS = 1.0


@dataclass
class Output:
    """One stream of the child: it writes to `descriptor` while the context lasts.

    If captured, `text()` has the output after that. Else the output goes to `stream`: directly if that is the process's own,
    through a pipe and a thread if it belongs to a notebook or a test.
    """

    _stream: TextIO | None
    _own: TextIO | None
    _number: int
    _capture: bool
    _file: BinaryIO | None = None
    _thread: threading.Thread | None = None
    _kept: bytes = b""
    descriptor: int = -1

    def __enter__(self) -> Output:
        if self._capture:
            self._file = tempfile.TemporaryFile()
            self.descriptor = os.dup(self._file.fileno())
        elif self._stream is None or self._stream is self._own:
            if self._stream is not None:
                self._stream.flush()
            self.descriptor = _copy(self._number)
        else:
            reader, self.descriptor = os.pipe()
            self._thread = threading.Thread(target=_pump, args=(reader, self._stream), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.descriptor)
        if self._file is not None:
            self._file.seek(0)
            self._kept = self._file.read()
            self._file.close()
        if self._thread is not None:
            # A process that outlives the function may hold the other end.
            self._thread.join(_PATIENCE_SECONDS)

    def text(self) -> str:
        return self._kept.decode(errors="replace")


def stdout(capture: bool) -> Output:
    return Output(sys.stdout, sys.__stdout__, 1, capture)


def stderr(capture: bool) -> Output:
    return Output(sys.stderr, sys.__stderr__, 2, capture)


def _copy(number: int) -> int:
    try:
        return os.dup(number)
    except OSError:  # closed
        return os.open(os.devnull, os.O_WRONLY)


def _pump(reader: int, stream: TextIO) -> None:
    with open(reader, encoding="utf-8", errors="replace", newline="") as lines:
        for line in lines:
            try:
                stream.write(line)
                stream.flush()
            except (OSError, ValueError):  # closed meanwhile: the child must not block for it
                pass
