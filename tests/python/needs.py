"""What a test needs that may not be there, and the words for skipping it."""

import importlib.util as util
import os
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
PROGRAMS = BUILD / "tests" / "programs"


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


def pretend_gpu():
    """What is set in the environment of a process that is to have the pretend GPU."""
    return {"LD_PRELOAD": ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*")))}
