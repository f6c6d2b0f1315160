"""A file of tests is left out where it has passed before, here, and nothing that it depends on has changed since.

    pytest tests/python --passed-before FILE [--repeat]    leaves out what FILE knows, and notes in it what passed; --repeat: only notes

It depends on its own text and on that of all that it names of this folder, and on what of the folders and pieces below it names; on
what was installed; on the product, unless it names but the programs that are compared with torch. That is a guess from words, on the
safe side: CI repeats everything.
"""

import hashlib
import json
import os
import re
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Dict, Iterable, List, Set

import needs
import pytest

HERE = Path(__file__).parent
HOME, BUILD = needs.HOME, needs.BUILD
ALWAYS = ("conftest.py", "needs.py", "passed_before.py")  # They name everything, for all.
FOLDERS = ("bench", "docs", "examples", "scripts", "src", "README.md")
PRODUCT = (BUILD / "bin", BUILD / "python", HOME / "python", HOME / "src/plimsoll/pretend/profiles", HOME / "pyproject.toml")
PROGRAMS = (BUILD / "tests/programs", BUILD / "examples")
NAMES_PRODUCT = re.compile(r"plimsoll_(run|command)|why_no_package|planner|(import|from) plimsoll|plimsoll\.py|LD_PRELOAD")
NAMES_PROGRAMS = re.compile(r"\b(PROGRAMS|BUILD|why_not)\b")
PACKAGES = ("torch", "triton", "transformers", "numpy", "pytest")


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
    parts |= {file.parent / name for name in ALWAYS}
    parts |= {HOME / name for name in FOLDERS if re.search(rf"\b{re.escape(name)}\b", text)}
    parts |= {HOME / "tests/golden", HOME / "tests/report/golden", BUILD / "pretend", HOME / "cmake"}
    if NAMES_PROGRAMS.search(text):
        parts |= set(PROGRAMS)
    if NAMES_PRODUCT.search(text) or not NAMES_PROGRAMS.search(text):
        parts |= set(PRODUCT)
    sums = [f"{os.path.relpath(path, HOME)} {_sum(path)}" for path in sorted(parts)]
    return hashlib.sha256("\n".join([_environment(), *sums]).encode()).hexdigest()


@lru_cache(maxsize=None)
def _sum(path: Path) -> str:
    files: Iterable[Path] = sorted(p for p in path.rglob("*") if "__pycache__" not in p.parts) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        if file.is_file() and not file.is_symlink():
            found.update(str(file.relative_to(path.parent)).encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


@lru_cache(maxsize=None)
def _environment() -> str:
    versions = [f"{package} {_version(package)}" for package in PACKAGES]
    return json.dumps([sys.version, versions, needs.EVERY_CASE])


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


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
        self.repeats: bool = config.getoption("repeat")
        self.marks: str = config.getoption("markexpr")
        self.selection = " ".join([config.getoption("keyword"), *(argument for argument in config.args if "::" in argument)])
        self.is_worker = hasattr(config, "workerinput")
        self.known: Dict[str, str] = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.keys: Dict[Path, str] = {}
        self.failed: Set[str] = set()
        self.ran: Set[str] = set()

    def _key(self, file: Path) -> str:
        if file not in self.keys:  # As things stood when it was first asked, before any test ran.
            marked = re.findall(r"mark\.(\w+)", file.read_text(encoding="utf-8"))
            marks = self.marks if set(marked) & set(re.findall(r"\w+", self.marks)) else ""
            self.keys[file] = f"{marks} {self.selection} {key(file)}"
        return self.keys[file]

    def pytest_report_header(self, config: pytest.Config) -> List[str]:
        files = sorted(HERE.glob("test_*.py"))
        count = 0 if self.repeats else sum(self.known.get(file.name) == self._key(file) for file in files)
        return [f"{count} of {len(files)} test files passed here as they are: left out"] if count else []

    def pytest_ignore_collect(self, collection_path: Path) -> object:
        is_known = not self.repeats and collection_path.name in self.known and collection_path.parent == HERE
        return True if is_known and self.known[collection_path.name] == self._key(collection_path) else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = Path(report.nodeid.partition("::")[0]).name
        (self.failed if report.failed else self.ran).add(name)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(Path(report.nodeid.partition("::")[0]).name)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_worker:
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.known and not self.repeats:
            session.exitstatus = pytest.ExitCode.OK
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self.known.update({name: self._key(HERE / name) for name in self.ran - self.failed if (HERE / name).exists()})
            for name in self.failed:
                self.known.pop(name, None)
            self.file.write_text(json.dumps(self.known, indent=1, sort_keys=True) + "\n")
