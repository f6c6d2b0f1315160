"""The files that the command reads: `<record_dir>/<pid>.json` or `<record_dir>/bad_usage`.

The record is the report of `run` (docs/json_schema.md) without its verdict and the values that only the command knows.
Each new record replaces the old one as a whole.
"""

import json
import os
from typing import Any

from plimsoll.document_fields import PHASE, STEP, written
from plimsoll.run.observe.peaks import Window
from plimsoll.run.observe.phases import Phases


def _phase(window: Window) -> dict[str, Any]:
    return written(
        PHASE,
        active=window.active_peak,
        allocated=window.allocated_peak,
        reserved=window.reserved_peak,
        active_end=window.active_end,
        reserved_end=window.reserved_end,
    )


def step_record(phases: Phases, device: int, step: int | None = None) -> dict[str, Any]:
    """A step, or the time before or after the steps, on one device."""
    mine = {name: windows[device] for name, windows in phases.items() if device in windows}
    return written(
        STEP,
        step=step,
        active=max((window.active_peak for window in mine.values()), default=0),
        allocated=max((window.allocated_peak for window in mine.values()), default=0),
        reserved=max((window.reserved_peak for window in mine.values()), default=0),
        phases={name: _phase(window) for name, window in mine.items()},
    )


class StepTexts:
    """Steps as JSON. The record is written after every step. A finished step never changes, so its text is made once."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, int], str] = {}

    def text(self, steps: list[tuple[int, Phases]], finished: int, device: int) -> str:
        """REQUIRES: the steps below `finished` do not change."""
        known, self._texts = self._texts, {}
        texts = []
        for number, phases in steps:
            text = known.get((number, device)) or _compact(step_record(phases, device, number))
            if number < finished:
                self._texts[number, device] = text
            texts.append(text)
        return f"[{','.join(texts)}]"


def write_bad_usage(record_dir: str, message: str) -> None:
    """There is nothing to run. The command prints the message and makes no report."""
    with open(os.path.join(record_dir, "bad_usage"), "w", encoding="utf-8", errors="replace") as file:
        file.write(message)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def write(record_dir: str, record: dict[str, Any], steps: str = "[]") -> None:
    path = os.path.join(record_dir, f"{os.getpid()}.json")
    partial = f"{path}.partial"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(f'{_compact(record)[:-1]},"steps":{steps}}}')
        os.replace(partial, path)
    except OSError:
        # The command that made the folder has ended.
        pass
