"""The package's types: strict, and those of the native part what it has."""

import ast
import importlib.util
import json
import os
import subprocess
import sys

import needs
import pytest

PACKAGE = needs.HOME / "python" / "plimsoll"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_the_package_is_strict(tmp_path):
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=needs.HOME, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert (PACKAGE / "py.typed").exists()


def stub_names():
    """{"": functions and classes, class: its methods and values}."""
    tree = ast.parse((PACKAGE / "_C.pyi").read_text())
    names = {"": set()}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            names[""].add(node.name)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in ("Recomputation", "StateCreation"):
            names[node.name] = {part.name for part in node.body if isinstance(part, ast.FunctionDef) and part.name != "__init__"}
            names[node.name] |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
    return names


LOOK = """
import json
from plimsoll import native
module = native._C
names = {"": [name for name in dir(module) if not name.startswith("_")]}
for kind in ("Tracker", "ModuleTracker", "MemoryUse", "Stage"):
    names[kind] = [name for name in vars(getattr(module, kind)) if not name.startswith("_")]
print(json.dumps(names))
"""


@pytest.mark.skipif(needs.why_no_package() is not None, reason=str(needs.why_no_package()))
def test_the_stubs_are_those_of_the_native_part():
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": str(needs.HOME / "python")}
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {kind: set(names) for kind, names in json.loads(done.stdout).items()}
    assert found == stub_names()


DOCTESTS = """
import doctest, importlib, sys
failed = attempted = 0
for name in sys.argv[1:]:
    result = doctest.testmod(importlib.import_module(name))
    failed, attempted = failed + result.failed, attempted + result.attempted
assert attempted and not failed, (failed, attempted)
"""


@pytest.mark.skipif(needs.why_no_package() is not None, reason=str(needs.why_no_package()))
def test_the_examples_in_docstrings_run():
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": str(needs.HOME / "python")}
    command = [sys.executable, "-c", DOCTESTS, "plimsoll.trackers.mem_tracker", "plimsoll.trackers.mod_tracker"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
