"""passed_before.py in a folder of its own: what is left out by `pytest --passed-before`, and what is not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from owed import Past, Unit, chosen

HERE = Path(__file__).parent
FILES = {
    "tests/python/conftest.py": "pytest_plugins = ['passed_before']\n",
    "tests/python/test_alone.py": "def test(): pass\n",
    "tests/python/test_helped.py": "import helper\ndef test(): assert helper.answer\n",
    "tests/python/helper.py": "import deeper\nanswer = deeper.answer\n",
    "tests/python/deeper.py": "answer = 42\n",
    "tests/python/test_programs.py": "PROGRAMS = 1\ndef test(): pass\n",
    "tests/python/test_run.py": "name = 'plimsoll_run'\ndef test(): pass\n",
    "tests/python/test_trackers.py": "MemTracker = 1\ndef test(): pass\n",
    "tests/python/test_docs.py": "folder = 'docs'\ndef test(): pass\n",
    "tests/golden/recording.json": "1",
    "python/plimsoll/run/observe/observer.py": "observer",
    "python/plimsoll/trackers/hooks.py": "trackers",
    "build/release/bin/plimsoll": "command",
    "build/release/pretend/libcuda.so.1": "libraries",
    "build/release/tests/programs/test_programs": "programs",
    "docs/page.md": "page",
}
ALL = ["alone", "docs", "helped", "programs", "run", "trackers"]


@pytest.fixture
def home(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("passed_before.py", "depends_on.py", "owed.py", "needs.py", "warm_python.py"):
        shutil.copy(HERE / name, tmp_path / "tests" / "python" / name)
    return tmp_path


def check(home, *options, code):
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "tests/python",
        "-p",
        "no:cacheprovider",
        "-v",
        "--passed-before",
        "passed.json",
    ]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*command, *options], cwd=home, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def ran(home, *options, code=0):
    """The test files that ran, by name."""
    printed = check(home, *options, code=code)
    return [name for name in ALL if f"test_{name}.py" in printed]


def how_many(home, names, *options, code=0):
    """How many tests ran, by file."""
    printed = check(home, *options, code=code)
    lines = [line for line in printed.splitlines() if re.search(r"^(\[gw|tests/).*(PASSED|FAILED)", line)]
    found = {name: sum(f"test_{name}.py::" in line for line in lines) for name in names}
    return {name: count for name, count in found.items() if count}


def keys(home):
    program = "import sys, needs, depends_on as d; here = needs.HOME / 'tests/python'; print(*[d.sums(here / f'test_{n}.py').all for n in sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, *ALL], cwd=home / "tests/python", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_passed_is_left_out(home):
    assert ran(home) == ALL
    assert ran(home) == []
    (home / "tests/python/test_alone.py").write_text("def test_more(): pass\n")
    assert ran(home) == ["alone"]
    assert ran(home, "--repeat") == ALL


def test_a_file_depends_on_what_it_names(home):
    before = keys(home)
    for changed, expected in {
        "tests/python/test_alone.py": ["alone"],
        "tests/python/deeper.py": ["helped"],
        "tests/python/conftest.py": ALL,
        "tests/python/warm_python.py": ALL,
        "tests/golden/recording.json": ALL,
        "docs/page.md": ["docs"],
        "build/release/bin/plimsoll": ["run"],
        "python/plimsoll/run/observe/observer.py": ["run"],
        "python/plimsoll/trackers/hooks.py": ["run", "trackers"],
        "build/release/pretend/libcuda.so.1": ALL,
        "build/release/tests/programs/test_programs": ["programs"],
        "build/release/bin/cmake_install.cmake": [],
    }.items():
        with open(home / changed, "a") as file:
            file.write("\n")
        after = keys(home)
        assert [name for name, old, new in zip(ALL, before, after) if old != new] == expected, changed
        before = after


def test_marks_that_are_asked_for_matter_to_files_that_have_them(home):
    (home / "tests/python/test_alone.py").write_text(
        "import pytest\n@pytest.mark.skipif(False, reason='')\ndef test(): pass\n"
    )
    assert ran(home) == ALL
    assert ran(home, "-m", "not other") == []
    assert ran(home, "-m", "skipif or not skipif") == ["alone"]
    assert ran(home, "-m", "skipif or not skipif") == []


def test_a_part_of_a_file_is_not_the_file(home):
    assert ran(home, "-k", "test_alone") == ["alone"]
    assert ran(home) == ALL
    assert ran(home, "-k", "nothing", code=5) == []


def test_what_changes_while_tests_run_is_repeated(home):
    change = "def test():\n    with open('tests/python/test_docs.py', 'a') as file: file.write('#')\n"
    (home / "tests/python/test_alone.py").write_text(change)
    assert ran(home, "--repeat") == ALL
    assert ran(home) == ["alone", "docs"], "the one, and the other, which names it"


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["alone", "xdist"])
def test_what_failed_is_repeated_and_what_passed_beside_it_is_not(home, workers):
    (home / "tests/python/deeper.py").write_text("answer = 0\n")
    assert ran(home, *workers, code=1) == ALL
    assert ran(home, *workers, code=1) == ["helped"]
    (home / "tests/python/deeper.py").write_text("answer = 1\n")
    assert ran(home, *workers) == ["helped"]
    assert ran(home, *workers) == []


def test_what_cannot_be_imported_is_repeated(home):
    (home / "tests/python/test_alone.py").write_text("import nothing\n")
    for _ in range(2):
        assert "alone" in ran(home, code=2)
    (home / "tests/python/test_alone.py").write_text("def test(): pass\n")
    assert ran(home) == ALL


def test_what_a_change_concerns_is_repeated_as_far_as_the_time_goes_and_the_rest_is_owed(home):
    (home / "tests/python/test_run.py").write_text(
        "# plimsoll_run\nimport time\ndef test_a(): time.sleep(0.1)\ndef test_b(): pass\n"
    )
    ran(home)
    (home / "build/release/bin/plimsoll").write_text("another")
    assert how_many(home, ALL, "--within", "0") == {}, "the one takes too long, and for the other it is too late"
    assert "2 tests that a change concerns are owed" in (home / "passed.json.owed").read_text()
    assert how_many(home, ALL, "--within", "600") == {"run": 2}
    assert not (home / "passed.json.owed").exists()
    assert ran(home, "--within", "600") == []


def test_what_failed_what_is_new_and_what_was_changed_is_never_owed(home):
    (home / "tests/python/test_run.py").write_text(
        "# plimsoll_run\nimport time\ndef test_passes(): time.sleep(0.1)\ndef test_fails(): assert 0\n"
    )
    ran(home, code=1)
    (home / "build/release/bin/plimsoll").write_text("another")
    (home / "tests/python/test_alone.py").write_text("def test(): pass\ndef test_new(): pass\n")
    assert how_many(home, ALL, "--within", "0", code=1) == {"alone": 2, "run": 1}


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["alone", "xdist"])
def test_what_would_end_too_late_is_not_begun(home, workers):
    """They took no time, and there is none. The one that failed stands before them, with what it made for its module."""
    (home / "tests/python/test_run.py").write_text("""# plimsoll_run
import pytest
@pytest.fixture(scope="module")
def shared(): yield
@pytest.mark.parametrize("n", range(3))
def test(shared, n): assert n != 0
""")
    (home / "tests/python/test_trackers.py").write_text(
        "# MemTracker\ndef test_a(): assert False\ndef test_b(): pass\n"
    )
    ran(home, *workers, code=1)
    for changed in ("build/release/bin/plimsoll", "python/plimsoll/trackers/hooks.py"):
        (home / changed).write_text("another")
    assert how_many(home, ALL, *workers, "--within", "0", code=1) == {"run": 1, "trackers": 1}
    assert "3 tests that a change concerns are owed" in (home / "passed.json.owed").read_text()
    assert how_many(home, ALL, *workers, "--within", "600", code=1) == {"run": 3, "trackers": 2}


# -- which are chosen --------------------------------------------------------------------------------------------------------

UNITS = [Unit(file, (f"{file}::{number}",)) for file in ("a", "b", "c") for number in range(3)]
OWN = {"a": "as it was", "b": "as it was", "c": "as it was"}


def past(seconds, **owed):
    return {test: Past("as it was", "then", seconds, owed.get(unit.file, 0)) for unit in UNITS for test in unit.tests}


def test_some_of_each_file_are_chosen():
    found = chosen(UNITS, past(1.0), OWN, 4.5)
    assert len(found) == 4 and {unit.file for unit in found} == {"a", "b", "c"}
    assert chosen(UNITS, past(1.0), OWN, 9.0) == set(UNITS)


def test_what_is_owed_longest_is_chosen_first():
    assert chosen(UNITS, past(1.0, b=1), OWN, 3.5) == {unit for unit in UNITS if unit.file == "b"}


def test_what_must_run_is_chosen_whatever_it_takes_and_leaves_less_for_the_others():
    known = past(1.0)
    known["a::0"] = known["a::0"]._replace(all="")
    del known["b::1"]
    changed = {**OWN, "c": "as it is now"}
    must = {UNITS[0], UNITS[4], *UNITS[6:]}
    assert chosen(UNITS, known, changed, 0.0) == must
    assert len(chosen(UNITS, known, changed, 6.0)) == len(must) + 2, "four that are known take four seconds"


def test_tests_that_share_what_takes_long_are_chosen_together_or_not_at_all():
    unit = Unit("a", ("a::0", "a::1"))
    known = {"a::0": Past("as it was", "then", 5.0), "a::1": Past("as it was", "then", 0.0)}
    assert chosen([unit], known, OWN, 3.0) == set()
    assert chosen([unit], known, OWN, 6.0) == {unit}


def test_what_is_too_long_for_the_rest_of_the_time_leaves_it_to_others():
    known = {**past(1.0), "a::0": Past("as it was", "then", 100.0, 5)}
    assert chosen(UNITS, known, OWN, 8.0) == set(UNITS[1:])
