"""What torch answered in the comparisons that ask it at length, recorded. It answers the same every time: its version, the program that
asks and the case decide it. So `./check` compares ours with what is recorded and asks torch itself in a few cases, which shows that
the recording is true; `./check --every-case` asks it in all. Where another torch is installed than the recorded one, it is asked.

    PLIMSOLL_RECORD=1 pytest tests/python -m recorded     asks, and writes tests/golden/torchs_answers anew
"""

import hashlib
import json
import lzma
import os
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import needs

FOLDER = needs.HOME / "tests" / "golden" / "torchs_answers"
RECORD = "PLIMSOLL_RECORD" in os.environ
_HERE = Path(__file__).parent

Answers = dict[str, Any]


class Recorded:
    """The answers of one program. `sources`: it and what it imports of ours; `packages`: what else decides its answers."""

    def __init__(self, name: str, sources: Iterable[str], packages: Iterable[str] = ("torch",)) -> None:
        self.file = FOLDER / f"{name}.json.xz"
        self.sources = hashlib.sha256(b"".join((_HERE / source).read_bytes() for source in sources)).hexdigest()
        self.packages = {package: _version(package) for package in packages}

    def ask(self, cases: Iterable[str], ask: Callable[[list[str]], Answers], live: int = 2) -> Answers:
        """An answer for each case. `ask(cases)` asks torch; of what is recorded it does so for `live` cases, scattered."""
        cases = list(cases)
        recorded = {} if needs.EVERY_CASE or RECORD else self._read()
        if not recorded.keys() >= set(cases):
            found = ask(cases)
            if RECORD:
                self._write(found)
            return found
        sample = cases[:: max(1, len(cases) // live)][:live]
        for case, answer in ask(sample).items():
            # As JSON has it: what was asked just now may hold tuples.
            assert json.loads(json.dumps(answer)) == recorded[case], (
                f"{self.file.name} is not what torch answers now: {case}"
            )
        return {case: recorded[case] for case in cases}

    def _read(self) -> Answers:
        if not self.file.exists():
            return {}
        with lzma.open(self.file, "rt") as file:
            found = json.load(file)
        if found["packages"] != self.packages:
            return {}
        assert found["sources"] == self.sources, (
            f"{self.file.name} was made by another version of its program: see {__name__}"
        )
        return found["answers"]

    def _write(self, answers: Answers) -> None:
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(
            {"packages": self.packages, "sources": self.sources, "answers": answers}, separators=(",", ":")
        )
        with lzma.open(self.file, "wt", preset=9) as file:
            file.write(text)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
