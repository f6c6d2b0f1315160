"""The files that the command reads: `<record_dir>/<pid>.json` or `<record_dir>/bad_usage`.

The record is the report of `run` (docs/json_schema.md) without its verdict and the values that only the command knows.
Each new record replaces the old one as a whole.
"""

import json
import os
import pickle
from typing import Any

from plimsoll.document_fields import PHASE, STEP, written
from plimsoll.run.contents.history import Snapshot
from plimsoll.run.observe.phases import Phases


def step_record(phases: Phases, device: int, step: int | None = None) -> dict[str, Any]:
    """A step, or the time before or after the steps, on one device."""
    mine = {name: windows[device] for name, windows in phases.items() if device in windows}
    return written(
        STEP,
        step=step,
        active=max((window.active for window in mine.values()), default=0),
        allocated=max((window.allocated for window in mine.values()), default=0),
        reserved=max((window.reserved for window in mine.values()), default=0),
        phases={name: written(PHASE, **window._asdict()) for name, window in mine.items()},
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
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(record_dir: str, record: dict[str, Any], steps: str = "[]") -> None:
    # The name of a script may have bytes that are not UTF-8: they become question marks.
    text = f'{_compact(record)[:-1]},"steps":{steps}}}'
    try:
        _replace(os.path.join(record_dir, f"{os.getpid()}.json"), text.encode(errors="replace"))
    except OSError:
        pass  # The command that made the folder has ended.


def write_snapshot(snapshot: Snapshot, path: str) -> None:
    """`--snapshot`: the format of `torch.cuda.memory._dump_snapshot`, for memory_viz."""
    _replace(path, pickle.dumps(snapshot))


def _replace(path: str, content: bytes) -> None:
    """A reader never sees a partial file."""
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
