"""Programs of claims: functions that one process runs on the pretend GPU, each of them a test.

The program marks them (`@claim`) and ends with `main()`; its test has `NAMES = claims.names(PROGRAM)`, and asks `claims.run(PROGRAM)`
what each of them raised.
"""

import ast
import gc
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import needs

_marked = {}


def claim(function):
    _marked[function.__name__] = function
    return function


def main():
    """{claim: what it raised, or null} as JSON on standard output."""
    gc.freeze()  # What was imported is not looked through again and again.
    found = {}
    for name, check in _marked.items():
        try:
            check()
            found[name] = None
        except BaseException:
            found[name] = traceback.format_exc()
        gc.collect()
    print(json.dumps(found))


def names(program):
    """Without running it."""
    functions = [node for node in ast.parse(Path(program).read_text()).body if isinstance(node, ast.FunctionDef)]
    return [
        node.name
        for node in functions
        if any(isinstance(mark, ast.Name) and mark.id == "claim" for mark in node.decorator_list)
    ]


def run(program):
    path = os.pathsep.join(
        filter(None, (str(needs.HOME / "python"), str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
    )
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
