"""Test functions that run on the pretend GPU, each in a process of its own.

torch loads only in a process on the pretend GPU, and pytest's process is not on it. So pytest reads the names of a file's
functions without importing the file (`PretendGpuFile`). One process on the pretend GPU imports the file, and forks for each
test: a test starts with torch imported, and leaves nothing behind for the next test.

    python pretend_gpu_tests.py FILE     names of functions on standard input, one JSON outcome for each on standard output
"""

import ast
import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import needs
import pytest

LIMIT = 300  # seconds for one test


# -- in pytest's process ------------------------------------------------------------------------------------------------


class PretendGpuFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for node in ast.parse(self.path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                test = PretendGpuTest.from_parent(self, name=node.name)
                test.line = node.lineno - 1
                test.add_marker(pytest.mark.xdist_group(self.path.stem))  # One process for all tests of the file.
                yield test

    def setup(self) -> None:
        reason = needs.why_no_package()
        if reason is not None:
            pytest.skip(reason)
        folders = (str(needs.HOME / "python"), *sys.path)
        environment = {
            **os.environ,
            **needs.pretend_gpu(),
            "PYTHONPATH": os.pathsep.join(folders),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, __file__, str(self.path)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    def teardown(self) -> None:
        if hasattr(self, "process"):
            self.process.communicate()
            del self.process

    def ask(self, name: str) -> dict[str, str]:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failed": f"{self.path.name} cannot be imported on the pretend GPU"}


class PretendGpuTest(pytest.Item):
    line: int

    def runtest(self) -> None:
        assert isinstance(self.parent, PretendGpuFile)
        outcome = self.parent.ask(self.name)
        if "skipped" in outcome:
            pytest.skip(outcome["skipped"])
        if "failed" in outcome:
            pytest.fail(outcome["failed"], pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line, self.name


# -- in the process on the pretend GPU ----------------------------------------------------------------------------------


def serve(file: str) -> None:
    found = spec_from_file_location(Path(file).stem, file)
    assert found is not None and found.loader is not None
    module = module_from_spec(found)
    sys.modules[found.name] = module
    try:
        found.loader.exec_module(module)
        skipped = None
    except pytest.skip.Exception as reason:
        skipped = str(reason)
    gc.freeze()  # The collections of a test are faster without the objects of the imports.
    for name in sys.stdin:
        outcome = {"skipped": skipped} if skipped else run_in_fork(module, name.strip())
        print(json.dumps(outcome), flush=True)


def run_in_fork(module: object, name: str) -> dict[str, str]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        os.dup2(2, 1)
        outcome = run(module, name)
        sys.stdout.flush()
        with open(write, "w", encoding="utf-8") as file:
            file.write(json.dumps(outcome))
        os._exit(0)  # torch's threads still run: the interpreter must not end under them.
    os.close(write)
    with open(read, encoding="utf-8") as file:
        written = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(written) if written else {"failed": f"the process of {name} ended with wait status {status}"}


def run(module: object, name: str) -> dict[str, str]:
    try:
        getattr(module, name)()
    except pytest.skip.Exception as reason:
        return {"skipped": str(reason)}
    except BaseException:
        return {"failed": traceback.format_exc()}
    return {}


if __name__ == "__main__":
    serve(sys.argv[1])
