"""passed_before.py in a folder of its own: what is left out by `pytest --passed-before`, and what is not."""

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
    "tests/python/test_fsdp_numbers.py": "PROGRAMS = 1\ndef test(): pass\n",
    "tests/python/test_docs.py": "folder = 'docs'\ndef test(): pass\n",
    "tests/golden/recording.json": "1",
    "build/release/bin/plimsoll": "command",
    "build/release/pretend/libcuda.so.1": "libraries",
    "build/release/tests/programs/test_programs": "programs",
    "docs/page.md": "page",
}
ALL = ["alone", "docs", "fsdp_numbers", "helped"]


@pytest.fixture
def home(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("passed_before.py", "needs.py", "warm_python.py"):
        shutil.copy(HERE / name, tmp_path / "tests" / "python" / name)
    return tmp_path


def ran(home, *options, code=0):
    """The test files that ran, by name."""
    command = [sys.executable, "-B", "-m", "pytest", "tests/python", "-p", "no:cacheprovider", "-v", "--passed-before", "passed.json"]
    done = subprocess.run([*command, *options], cwd=home, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return [name for name in ALL if f"test_{name}.py" in done.stdout]


def keys(home):
    program = "import sys, passed_before as p; print(*[p.key(p.HERE / f'test_{name}.py') for name in sys.argv[1:]])"
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
        "build/release/bin/plimsoll": ["alone", "docs", "helped"],
        "build/release/pretend/libcuda.so.1": ALL,
        "build/release/tests/programs/test_programs": ["fsdp_numbers"],
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


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
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
