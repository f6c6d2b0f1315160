"""Tests are left out where they have passed before, here, and nothing that they depend on has changed since.

    pytest tests/python --passed-before FILE               leaves out what FILE knows, and notes in it what passed
                        --passed-before FILE --repeat      only notes
                        --passed-before FILE --within N    ends in about N seconds, and owes the tests that are left then: see owed.py

What is owed stands in FILE.owed, in words.
"""

import json
import re
import time
from collections import defaultdict
from pathlib import Path

import depends_on
import pytest
from owed import Past, Unit, chosen, may_be_owed

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--passed-before", metavar="FILE", type=Path, help="leave out tests that passed as they are, as FILE says"
    )
    parser.addoption(
        "--repeat", action="store_true", help="with --passed-before: leave out none, only note what passes"
    )
    parser.addoption(
        "--within", metavar="SECONDS", type=float, help="with --passed-before: end then, and owe the other tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Whoever takes a part of a file's tests has not seen the file pass.
    is_part = any(config.getoption(name, None) for name in ("keyword", "deselect", "maxfail", "lf")) or any(
        "::" in a for a in config.args
    )
    if config.getoption("passed_before", None) is not None and not is_part:
        config.pluginmanager.register(PassedBefore(config), "passed_before_of_tests")


class PassedBefore:
    def __init__(self, config: pytest.Config) -> None:
        self.file: Path = config.getoption("passed_before")
        self.repeats: bool = config.getoption("repeat")
        self.within: float | None = config.getoption("within")
        self.until = time.monotonic() + (self.within or 0)
        worker = getattr(config, "workerinput", None)
        self.is_worker = worker is not None
        self.workers: int = worker["workercount"] if worker else 1
        self.marks: str = config.getoption("markexpr")
        # As they stand before any test runs.
        self.sums = {file.name: self._sums(file) for file in sorted(HERE.glob("test_*.py"))}
        self.past: dict[str, Past] = {}
        if self.file.exists():
            self.past = {test: Past(*found) for test, found in json.loads(self.file.read_text()).items()}
        of_files: dict[str, list[str]] = defaultdict(list)
        for test in self.past:
            of_files[_file_of(test)].append(test)
        self.left_out = {name for name, tests in of_files.items() if all(map(self._has_passed, tests))}
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self.owed: list[str] = []

    def _sums(self, file: Path) -> depends_on.Sums:
        marked = re.findall(r"mark\.(\w+)", file.read_text(encoding="utf-8"))
        marks = self.marks if set(marked) & set(re.findall(r"\w+", self.marks)) else ""
        return depends_on.Sums(*(f"{marks} {found}" for found in depends_on.sums(file)))

    def _has_passed(self, test: str) -> bool:
        sums = self.sums.get(_file_of(test))
        return sums is not None and test in self.past and self.past[test].all == sums.all and not self.repeats

    # -- which are taken -----------------------------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        return (
            [f"{len(self.left_out)} of {len(self.sums)} test files passed here as they are: left out"]
            if self.left_out
            else []
        )

    def pytest_ignore_collect(self, collection_path: Path) -> object:
        return True if collection_path.parent == HERE and collection_path.name in self.left_out else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        units: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
        for item in items:
            group = item.get_closest_marker("xdist_group")
            units[_file_of(item.nodeid), group.args[0] if group else item.nodeid].append(item)
        named = {Unit(file, tuple(_name(item.nodeid) for item in found)): found for (file, _), found in units.items()}
        taken = {unit for unit in named if not all(map(self._has_passed, unit.tests))}
        if self.within is not None:
            taken = chosen(
                taken, self.past, {name: sums.own for name, sums in self.sums.items()}, self.within * self.workers
            )
        kept = {id(item) for unit in taken for item in named[unit]}
        left = [item for item in items if id(item) not in kept]
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if id(item) in kept]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Everything takes longer than it took where the machine has other work: what would end too late is owed as well."""
        past = self.past.get(_name(item.nodeid))
        if self.within is None or past is None or not may_be_owed(past, self.sums[_file_of(item.nodeid)].own):
            return None
        if time.monotonic() + past.seconds <= self.until:
            return None
        item.session._setupstate.teardown_exact(nextitem)  # What the test before has left for this one.
        return True

    # -- what became of them -------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[_name(report.nodeid)] += report.duration
        if report.failed:
            self.failed.add(_name(report.nodeid))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_worker or exitstatus not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            return
        for test, seconds in self.seconds.items():
            sums = self.sums[_file_of(test)]
            self.past[test] = Past(sums.own, "" if test in self.failed else sums.all, round(seconds, 2))
        for test, found in list(self.past.items()):
            sums = self.sums.get(_file_of(test))
            if test in self.seconds or self._has_passed(test):
                continue
            if sums is None or found.own != sums.own:
                del self.past[test]  # There is no such test any more.
            else:
                self.past[test] = found._replace(owed=found.owed + 1)
                self.owed.append(test)
        self.file.write_text(json.dumps(self.past, indent=0, sort_keys=True) + "\n")
        in_words = self.file.with_name(self.file.name + ".owed")
        in_words.write_text(self._in_words() + "\n") if self.owed else in_words.unlink(missing_ok=True)
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.past:
            session.exitstatus = pytest.ExitCode.OK

    def _in_words(self) -> str:
        seconds = sum(self.past[test].seconds for test in self.owed)
        return f"{len(self.owed)} tests that a change concerns are owed, {seconds:.0f} s of them: the next check begins there, --all repeats all"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.owed:
            terminalreporter.write_line(self._in_words())


def _name(nodeid: str) -> str:
    """Without the group that pytest-xdist adds to it."""
    return re.sub(r"@[^\]@]+$", "", nodeid)


def _file_of(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).name
