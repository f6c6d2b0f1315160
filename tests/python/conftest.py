"""Fixture `plimsoll_run` runs a script under the built `plimsoll run`, as a user does. Files of on_pretend_gpu have a collector."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import needs
import pytest
from needs import HOME
from pretend_gpu_tests import PretendGpuFile

sys.path.insert(0, str(HOME / "python"))
# CPU kernels without matrix tiles (AMX): some virtual machines announce AMX and crash on it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")


def pytest_pycollect_makemodule(module_path, parent):
    """Files of `on_pretend_gpu` import torch at their top: see pretend_gpu_tests.py."""
    if module_path.parent.name == "on_pretend_gpu":
        return PretendGpuFile.from_parent(parent, path=module_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that share a module's fixture run on one worker of xdist, so that the fixture, mostly a training, is made once.
    First, because xdist reads the marks in the same hook."""
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if any(fixture.scope == "module" for named in fixtures for fixture in named):
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))


def pytest_collection_finish(session):
    """Without groups no test fails, but the tests take longer. So a version of xdist that ignores groups is an error."""
    if getattr(session.config.option, "loadgroup", False):
        for item in session.items:
            mark = item.get_closest_marker("xdist_group")
            if mark is not None and mark.args[0] not in item.nodeid.rpartition("@")[2]:
                message = f"with this pytest, pytest-xdist spreads tests that are to stay together: {item.nodeid}"
                print(message, file=sys.stderr)
                pytest.exit(message, returncode=4)


class Run(NamedTuple):
    code: int
    stdout: str
    stderr: str
    json: dict[str, Any]


def _command() -> Path | None:
    build = needs.BUILD
    return next((path for path in (build / "plimsoll", build / "bin" / "plimsoll") if path.is_file()), None)


def _why_not() -> str | None:
    if _command() is None:
        return "the plimsoll command is not built"
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return "torch is not installed"
    if not (Path(found.origin).parent / "lib" / "libtorch_cuda.so").exists():
        return "torch is not a CUDA build"
    return None


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Writes a script into the test's own folder; returns its name."""

    def write(text: str, name: str = "train.py") -> str:
        (tmp_path / name).write_text(textwrap.dedent(text))
        return name

    return write


@pytest.fixture
def plimsoll_command() -> str:
    """The built command. The test is skipped without it, or without a torch that it can run."""
    reason = _why_not()
    if reason is not None:
        pytest.skip(reason)
    return str(_command())


@pytest.fixture(scope="session")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Plimsoll's folder, with an interpreter in which torch is imported already: see warm_python.py."""
    home = tmp_path_factory.mktemp("warm")
    for path in HOME.iterdir():
        if path.name != ".plimsoll":
            (home / path.name).symlink_to(path)
    program, where = Path(__file__).parent / "support" / "warm_python.py", home / "socket"
    python = home / ".plimsoll" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{program}" run "{where}" "$@"\n')
    python.chmod(0o755)
    command = [sys.executable, str(program), "serve", str(where)]
    env = {**os.environ, **needs.pretend_gpu()}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdout.readline() == "ready\n"
        yield home
        server.communicate("")


@pytest.fixture
def plimsoll_run(request: pytest.FixtureRequest, plimsoll_command: str, tmp_path: Path) -> Callable[..., Run]:
    """`plimsoll_run(*arguments, env={…})` runs `plimsoll run --full --json FILE arguments…` in the test's own folder."""
    is_warm = request.node.get_closest_marker("warm") is not None

    def run(*arguments: str, env: dict[str, str] | None = None, timeout: float = 600) -> Run:
        report = tmp_path / "report.json"
        # The import of torch reads other variables, and the kind of allocator.
        read_later = all(name.startswith(("PLIMSOLL_", "TORCHINDUCTOR_")) for name in env or ())
        is_free = is_warm and read_later and not any("backend:" in str(argument) for argument in arguments)
        home = {"PLIMSOLL_HOME": str(request.getfixturevalue("warm_home"))} if is_free else {}
        done = subprocess.run(
            [plimsoll_command, "run", "--full", "--json", str(report), *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **home, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        found = json.loads(report.read_text()) if report.exists() else {}
        return Run(done.returncode, done.stdout, done.stderr, found)

    return run
