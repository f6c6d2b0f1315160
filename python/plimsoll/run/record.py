"""What the command reads: the record `<record_dir>/<pid>.json`, replaced as a whole each time, or `<record_dir>/bad_usage`."""

import json
import os
from typing import Any

from plimsoll.run.observe.peaks import Window
from plimsoll.run.observe.phases import Phases

VERSION = 1


def window_record(window: Window) -> dict[str, int]:
    return {
        "active_peak_bytes": window.active_peak,
        "allocated_peak_bytes": window.allocated_peak,
        "reserved_peak_bytes": window.reserved_peak,
        "active_end_bytes": window.active_end,
        "reserved_end_bytes": window.reserved_end,
    }


def phases_record(phases: Phases, device: int, step: int | None = None) -> dict[str, Any]:
    """A step, or what came before or after the steps, on one device."""
    mine = {name: windows[device] for name, windows in phases.items() if device in windows}
    record: dict[str, Any] = {} if step is None else {"step": step}
    for name in ("active_peak", "allocated_peak", "reserved_peak"):
        record[f"{name}_bytes"] = max((getattr(window, name) for window in mine.values()), default=0)
    record["phases"] = {name: window_record(window) for name, window in mine.items()}
    return record


class StepTexts:
    """Steps as JSON. A finished step never changes, so its text is made once: the record is written after every step."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, int], str] = {}

    def text(self, steps: list[tuple[int, Phases]], finished: int, device: int) -> str:
        """REQUIRES: the steps below `finished` will not change any more."""
        known, self._texts = self._texts, {}
        texts = []
        for number, phases in steps:
            text = known.get((number, device)) or _compact(phases_record(phases, device, number))
            if number < finished:
                self._texts[number, device] = text
            texts.append(text)
        return f"[{','.join(texts)}]"


def write_bad_usage(record_dir: str, message: str) -> None:
    """There is nothing to run: the command says so, and makes no report."""
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
        # The folder went away with the command that made it: nobody is left to read.
        pass
