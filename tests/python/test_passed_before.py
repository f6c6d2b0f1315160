"""passed_before.py in a folder of its own: what is left out by `pytest --passed-before`, and what is not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    "python/plimsoll/run/observer.py": "observer",
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
    command = [sys.executable, "-B", "-m", "pytest", "tests/python", "-p", "no:cacheprovider", "-v", "--passed-before", "passed.json"]
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
    found = {name: len(re.findall(rf"test_{name}\.py::\S+ (?:PASSED|FAILED)", printed)) for name in names}
    return {name: count for name, count in found.items() if count}


def keys(home):
    program = "import sys, needs, depends_on as d; here = needs.HOME / 'tests/python'; print(*[d.sums(here / f'test_{n}.py').all for n in sys.argv[1:]])"
    done = subprocess.run([sys.executable, "-B", "-c", program, *ALL], cwd=home / "tests/python", capture_output=True, text=True)
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
        "python/plimsoll/run/observer.py": ["run"],
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
    (home / "tests/python/test_alone.py").write_text("import pytest\n@pytest.mark.skipif(False, reason='')\ndef test(): pass\n")
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


def test_of_many_that_a_change_concerns_some_are_repeated_and_the_others_are_owed(home):
    """Nine tests of a fifth of a second, in three files; 0.9 s are enough for four."""
    text = "import time, pytest\n@pytest.mark.parametrize('n', range(3))\ndef test(n): time.sleep(0.2)\n"
    names = ["run", "trackers", "helped"]
    for name in names:
        (home / f"tests/python/test_{name}.py").write_text(f"# plimsoll_run\n{text}")
    assert how_many(home, names) == {name: 3 for name in names}
    (home / "build/release/bin/plimsoll").write_text("another")
    some = how_many(home, names, "--within", "0.9")
    assert sum(some.values()) == 4 and min(some.values()) == 1, "one of each file, and a second of one"
    assert "5 tests that a change concerns are owed" in (home / "passed.json.owed").read_text()
    assert sum(how_many(home, names, "--within", "0.9").values()) == 4
    assert sum(how_many(home, names, "--within", "0.9").values()) == 1
    assert not (home / "passed.json.owed").exists()
    assert ran(home) == []


def test_what_failed_what_is_new_and_what_was_changed_is_never_owed(home):
    (home / "tests/python/test_run.py").write_text("# plimsoll_run\nimport time\ndef test_passes(): time.sleep(0.1)\ndef test_fails(): assert 0\n")
    ran(home, code=1)
    (home / "build/release/bin/plimsoll").write_text("another")
    (home / "tests/python/test_alone.py").write_text("def test(): pass\ndef test_new(): pass\n")
    assert how_many(home, ALL, "--within", "0", code=1) == {"alone": 2, "run": 1}


def test_tests_that_share_what_takes_long_are_repeated_together_or_not_at_all(home):
    marks = "import pytest, time\npytestmark = pytest.mark.xdist_group('one')\n"
    (home / "tests/python/test_run.py").write_text(f"# plimsoll_run\n{marks}def test_a(): time.sleep(0.3)\ndef test_b(): pass\n")
    ran(home)
    (home / "build/release/bin/plimsoll").write_text("another")
    assert how_many(home, ALL, "--within", "0.2") == {}
    assert how_many(home, ALL, "--within", "0.5") == {"run": 2}
