"""The drop-in trackers in good and in bad use. The claims are the functions of trackers_use.py and trackers_hooks.py."""

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import needs
import pytest

PROGRAMS = ("trackers_use", "trackers_hooks")
WHY_NOT = needs.why_no_package()
pytestmark = [
    pytest.mark.xdist_group("trackers_use"),
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]


def path_of(program):
    return Path(__file__).with_name(f"{program}.py")


def claims_of(program):
    for node in ast.parse(path_of(program).read_text()).body:
        if isinstance(node, ast.FunctionDef) and any(isinstance(mark, ast.Name) and mark.id == "claim" for mark in node.decorator_list):
            yield node.name


@functools.cache
def found_by(program):
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": str(needs.HOME / "python"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(path_of(program))], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("program", "claim"), [(program, claim) for program in PROGRAMS for claim in claims_of(program)])
def test_it_holds(program, claim):
    found = found_by(program)[claim]
    assert found is None, found
