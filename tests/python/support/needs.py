"""Paths of the build, and the reasons to skip a test whose programs or packages are missing."""

import importlib.util as util
import os
import sys
import zlib
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
PRETEND = BUILD / "pretend"
PROGRAMS = BUILD / "tests" / "programs"
PYTHON_PROGRAMS = HOME / "tests" / "python" / "programs"
EVERY_CASE = "PLIMSOLL_EVERY_CASE" in os.environ  # set by ./check --all; otherwise some of many similar cases run


def some(cases, one_in):
    """The first case of a list or a dictionary and about one in `one_in` of the others: always the same ones."""
    kept = [
        case
        for index, case in enumerate(cases)
        if EVERY_CASE or index == 0 or zlib.crc32(str(case).encode()) % one_in == 0
    ]
    return {case: cases[case] for case in kept} if isinstance(cases, dict) else kept


def ends(cases):
    """The first and the last case of a sorted list."""
    return cases if EVERY_CASE else [cases[0], cases[-1]]


def why_not(program, cuda=False):
    """Why the program cannot be compared with torch's own here, or None."""
    found = util.find_spec("torch")
    if found is None or found.origin is None:
        return "torch is not installed"
    if cuda and not (Path(found.origin).parent / "lib" / "libtorch_cuda.so").exists():
        return "torch is not a CUDA build"
    return None if program.exists() else f"{program.name} is not built"


def why_no_package():
    """Why the native part of the Python package cannot be used here, or None."""
    modules = list((BUILD / "python" / "plimsoll").glob("_C.*.so"))
    return why_not(modules[0] if modules else BUILD / "python" / "plimsoll" / "_C", cuda=True)


def python(*arguments):
    """The command that runs a Python program which may end right after a backward pass."""
    return [sys.executable, str(Path(__file__).with_name("waits_for_autograd.py")), *map(str, arguments)]


def pretend_gpu():
    """The environment variables that put a process on the pretend GPU."""
    return {"LD_PRELOAD": ":".join(str(path) for path in sorted(PRETEND.glob("*.so*")))}
