"""A file of tests is left out where it has passed before, here, and nothing that it depends on has changed since.

    pytest tests/python --passed-before FILE [--repeat]    leaves out what FILE knows, and notes in it what passed; --repeat: only notes

It depends on its own text, on that of all that it names of this folder, and on the other folders that it names; on what is installed;
on the pretend GPU; on the product, unless it is one of those that compare programs of ours with torch; on these, if it names them. Words
are a guess, though one that rather says too much: CI repeats everything.
"""

import hashlib
import json
import os
import re
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Dict, Iterable, List, Set, Union

import needs
import pytest

HERE = Path(__file__).parent
HOME, BUILD = needs.HOME, needs.BUILD
ALWAYS = ("conftest.py", "needs.py", "passed_before.py", "warm_python.py")  # The first names everything, for all.
FOR_ALL = ("tests/golden", "tests/report/golden", "src/plimsoll/pretend/profiles", "cmake", "pytest.ini")
FOLDERS = ("bench", "docs", "examples", "scripts", "src", "README.md")
ALSO = {"test_accuracy.py": ["docs"], "test_versions.py": ["src"], "test_wheel.py": ["README.md", "LICENSE"]}  # through what they run
PRODUCT = (BUILD / "bin", BUILD / "python", *(HOME / name for name in ("python", "scripts", "pyproject.toml", "CMakeLists.txt")))
WITHOUT_PRODUCT = ("test_fsdp_faults.py", "test_fsdp_memory.py", "test_fsdp_numbers.py", "test_fsdp_state.py")
PROGRAMS = (BUILD / "tests/programs", BUILD / "examples")
NAMES_PROGRAMS = re.compile(r"\b(PROGRAMS|BUILD|why_not)\b")


def closure(file: Path) -> Set[Path]:
    """The file, and all of its folder that it names, directly or not: as a module, or as a script that it runs."""
    stems = {path.stem: path for path in file.parent.glob("*.py") if path.name not in ALWAYS}
    stems.update({path.name: path for path in file.parent.iterdir() if path.is_dir() and path.name != "__pycache__"})
    found: Set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.is_dir():
            waiting += path.rglob("*.py")
        else:
            waiting += [stems[word] for word in set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) & stems.keys()]
    return found


def key(file: Path) -> str:
    """A sum of all that the tests of the file depend on."""
    parts = closure(file)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(parts) if path.is_file())
    named = [name for name in FOLDERS if re.search(rf"\b{re.escape(name)}\b", text)]
    parts |= {file.parent / name for name in ALWAYS} | {BUILD / "pretend"}
    parts |= set((HOME / "cmake").glob("*.cmake")) | {HOME / name for name in (*FOR_ALL, *named, *ALSO.get(file.name, ()))}
    if NAMES_PROGRAMS.search(text):
        parts |= set(PROGRAMS)
    if file.name not in WITHOUT_PRODUCT:
        parts |= set(PRODUCT)
    sums = [f"{os.path.relpath(path, HOME)} {_sum(path)}" for path in sorted(parts)]
    return hashlib.sha256("\n".join([_environment(), *sums]).encode()).hexdigest()


@lru_cache(maxsize=None)
def _sum(path: Path) -> str:
    # Not what CMake notes for itself in a build folder: it is written anew when the folder serves for a wheel.
    made = re.compile(r"/(__pycache__|CMakeFiles)/|\.cmake$")
    files: Iterable[Path] = sorted(p for p in path.rglob("*") if not made.search(str(p))) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        if file.is_file() and not file.is_symlink():
            found.update(str(file.relative_to(path.parent)).encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


@lru_cache(maxsize=None)
def _environment() -> str:
    installed = sorted({f"{found.metadata['Name']} {found.version}" for found in metadata.distributions()})
    ours = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("PLIMSOLL_"))
    return json.dumps([sys.version, installed, ours])


# -- of pytest ---------------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--passed-before", metavar="FILE", type=Path, help="leave out test files that passed as they are, as FILE says")
    parser.addoption("--repeat", action="store_true", help="with --passed-before: leave out none, only note what passes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("passed_before", None) is not None:
        config.pluginmanager.register(PassedBefore(config), "passed_before_of_files")


class PassedBefore:
    def __init__(self, config: pytest.Config) -> None:
        self.file: Path = config.getoption("passed_before")
        self.is_worker = hasattr(config, "workerinput")
        self.marks: str = config.getoption("markexpr")
        # Whoever takes a part of a file's tests has not seen the file pass.
        parts = [config.getoption(name, None) for name in ("keyword", "deselect", "maxfail", "lf")]
        self.selection = json.dumps([*parts, *(argument for argument in config.args if "::" in argument)])
        self.keys = {file.name: self._key(file) for file in sorted(HERE.glob("test_*.py"))}  # as they stand before any test runs
        self.known: Dict[str, str] = json.loads(self.file.read_text()) if self.file.exists() else {}
        repeats = config.getoption("repeat")
        self.left_out = {name for name, found in self.keys.items() if self.known.get(name) == found and not repeats}
        self.failed: Set[str] = set()
        self.ran: Set[str] = set()

    def _key(self, file: Path) -> str:
        marked = re.findall(r"mark\.(\w+)", file.read_text(encoding="utf-8"))
        marks = self.marks if set(marked) & set(re.findall(r"\w+", self.marks)) else ""
        return f"{marks} {self.selection} {key(file)}"

    def pytest_report_header(self) -> List[str]:
        return [f"{len(self.left_out)} of {len(self.keys)} test files passed here as they are: left out"] if self.left_out else []

    def pytest_ignore_collect(self, collection_path: Path) -> object:
        return True if collection_path.parent == HERE and collection_path.name in self.left_out else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        (self.failed if report.failed else self.ran).add(_file_of(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(_file_of(report))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_worker:
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.left_out:
            session.exitstatus = pytest.ExitCode.OK
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self.known.update({name: self.keys[name] for name in (self.ran - self.failed) & self.keys.keys()})
            for name in self.failed:
                self.known.pop(name, None)
            self.file.write_text(json.dumps(self.known, indent=1, sort_keys=True) + "\n")


def _file_of(report: Union[pytest.TestReport, pytest.CollectReport]) -> str:
    return Path(report.nodeid.partition("::")[0]).name
