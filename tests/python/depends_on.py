"""What the tests of a file depend on, as sums that change when it does.

It depends on its own text, on that of all that it names of this folder, and on the other folders that it names; on what is installed;
on the pretend GPU; and on those parts of the product that it has words for. Words are a guess, though one that rather says too much:
CI repeats everything.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import needs

HOME, BUILD = needs.HOME, needs.BUILD
ALWAYS = (
    "conftest.py",
    "needs.py",
    "depends_on.py",
    "passed_before.py",
    "owed.py",
    "warm_python.py",
)  # The first names everything, for all.
FOR_ALL = ("tests/golden", "tests/report/golden", "src/plimsoll/pretend/profiles", "cmake", "pytest.ini")
FOLDERS = ("bench", "docs", "examples", "scripts", "src", "README.md")
ALSO = {
    "test_accuracy.py": ["docs"],
    "test_versions.py": ["src"],
    "test_wheel.py": ["README.md", "LICENSE"],
}  # through what they run
# The product, by what a file says that uses it. What is run uses the trackers.
PACKAGE = HOME / "python" / "plimsoll"
TRACKERS = (PACKAGE / "trackers", *PACKAGE.glob("*.py*"), BUILD / "python")
COMMAND = (
    *TRACKERS,
    PACKAGE,
    BUILD / "bin",
    *(HOME / name for name in ("scripts", "pyproject.toml", "CMakeLists.txt")),
)
PROGRAMS = (BUILD / "tests/programs", BUILD / "examples")
PRODUCT = {
    r"(MemTracker|ModTracker)\b|plimsoll\.(trackers|native)\b": TRACKERS,
    r"\b(plimsoll_run|plimsoll_command|warm_home|planner|estimate|mypy)\b|plimsoll\.(run|planning)\b|[\"']bin[\"']": COMMAND,
    r"\b(PROGRAMS|BUILD)\b": PROGRAMS,
}


class Sums(NamedTuple):
    own: str  # of the file, and what it names of its folder
    all: str


def closure(file: Path) -> set[Path]:
    """The file, and all of its folder that it names, directly or not: as a module, or as a script that it runs."""
    stems = {path.stem: path for path in file.parent.glob("*.py") if path.name not in ALWAYS}
    stems.update({path.name: path for path in file.parent.iterdir() if path.is_dir() and path.name != "__pycache__"})
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.is_dir():
            waiting += path.rglob("*.py")
        else:
            waiting += [
                stems[word] for word in set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) & stems.keys()
            ]
    return found


def sums(file: Path) -> Sums:
    own = closure(file)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(own) if path.is_file())
    named = [name for name in FOLDERS if re.search(rf"\b{re.escape(name)}\b", text)]
    others = {file.parent / name for name in ALWAYS} | {BUILD / "pretend"}
    others |= set((HOME / "cmake").glob("*.cmake")) | {
        HOME / name for name in (*FOR_ALL, *named, *ALSO.get(file.name, ()))
    }
    for words, parts in PRODUCT.items():
        if re.search(words, text):
            others |= set(parts)
    return Sums(_sum_of(own), hashlib.sha256("\n".join([_environment(), _sum_of(own | others)]).encode()).hexdigest())


def _sum_of(paths: set[Path]) -> str:
    lines = [f"{os.path.relpath(path, HOME)} {_sum(path)}" for path in sorted(paths)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def _sum(path: Path) -> str:
    # Not what CMake notes for itself in a build folder: it is written anew when the folder serves for a wheel.
    made = re.compile(r"/(__pycache__|CMakeFiles)/|\.cmake$")
    files: Iterable[Path] = sorted(p for p in path.rglob("*") if not made.search(str(p))) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        if file.is_file() and not file.is_symlink():
            found.update(str(file.relative_to(path.parent)).encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


@cache
def _environment() -> str:
    installed = sorted({f"{found.metadata['Name']} {found.version}" for found in metadata.distributions()})
    ours = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("PLIMSOLL_"))
    return json.dumps([sys.version, installed, ours])
