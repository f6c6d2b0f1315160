"""What the drop-in trackers print and give is what torch's print and give. The claims are the functions of trackers_forms.py."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import needs
import pytest

PROGRAM = Path(__file__).with_name("trackers_forms.py")
CLAIMS = [
    node.name
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.FunctionDef) and any(isinstance(mark, ast.Name) and mark.id == "claim" for mark in node.decorator_list)
]
WHY_NOT = needs.why_no_package() or (None if importlib.util.find_spec("tabulate") else "tabulate is not installed")
pytestmark = [
    pytest.mark.xdist_group("trackers_forms"),
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]


@pytest.fixture(scope="module")
def found():
    path = os.pathsep.join(filter(None, (str(needs.HOME / "python"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("claim", CLAIMS)
def test_it_holds(found, claim):
    assert found[claim] is None, found[claim]
