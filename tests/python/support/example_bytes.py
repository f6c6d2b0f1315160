"""The recorded bytes of the shipped examples with torch 2.13: tests/golden/examples.json.

With PLIMSOLL_REGENERATE=1 in the environment they are written instead of compared."""

import json
import os
from typing import Any

from golden import FOLDER

FILE = FOLDER / "examples.json"


def bytes_of(report: dict[str, Any]) -> dict[str, Any]:
    """The peak of each book, and for each step the active peak and the active bytes at the end of each phase."""
    steps: list[dict[str, int]] = []
    for step in report["steps"]:
        phases = {name: phase["active_peak_bytes"] for name, phase in step["phases"].items() if name != "other"}
        ends = [phase["active_end_bytes"] for name, phase in step["phases"].items() if name == "optimizer"]
        steps.append({**phases, **({"end": ends[0]} if ends else {})})
    books = {book: report["peak"][f"{book}_bytes"] for book in ("active", "allocated", "reserved")}
    return {"peak": books, "steps": steps}


def check(name: str, found: dict[str, Any]) -> None:
    """Compares values with the recording of that name; both may be a part of `bytes_of`."""
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("PLIMSOLL_REGENERATE") == "1":
        recorded[name] = found
        lines = (f"{json.dumps(key)}: {json.dumps(recorded[key])}" for key in sorted(recorded))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    assert found == recorded[name], f"{name}: PLIMSOLL_REGENERATE=1 records it again"
