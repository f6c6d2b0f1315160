"""The golden runs of tests/golden, and the options that repeat one under `plimsoll run`."""

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parents[2] / "golden"
TRAIN = FOLDER / "training" / "train.py"
REPLAY = FOLDER / "allocator" / "replay.py"


class Case(NamedTuple):
    name: str
    file: Path

    def read(self) -> dict[str, Any]:
        return read(self.file)

    @property
    def trace(self) -> Path:
        """All allocator events of the run; it exists for some runs."""
        return FOLDER / "traces" / f"{self.name}.trace.json.gz"


def read(file: Path) -> dict[str, Any]:
    with gzip.open(file, "rt") if file.suffix == ".gz" else open(file, encoding="utf-8") as opened:
        return json.load(opened)


def cases(folder: str) -> list[Case]:
    return [Case(path.name.split(".json")[0], path) for path in sorted((FOLDER / folder).glob("*.json*"))]


def options(env: dict[str, str]) -> list[str]:
    """`plimsoll run`'s options for the environment that a golden run was made in."""
    found = ["--gpu", str(FOLDER / "golden-gpu.json")]
    names = {
        "PYTORCH_CUDA_ALLOC_CONF": "--alloc-conf",
        "FAKEGPU_TOTAL": "--gpu-memory",
        "FAKEGPU_EVENT_DELAY": "--event-lag",
    }
    for name, option in names.items():
        if env.get(name):
            found += [option, env[name]]
    return found
