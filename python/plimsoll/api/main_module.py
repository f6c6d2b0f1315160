"""Runs the main module of the program that calls `estimate` again in the child, so that `__main__` has its functions.

This works like multiprocessing's spawn: the main module runs under the name `__mp_main__`, so the code below
`if __name__ == "__main__":` does not run. Then the module becomes `__main__`.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from typing import Any

MainModule = tuple[str, str]  # ("module", name) or ("path", path)

_being_run_again = False


def describe() -> MainModule | None:
    """The main module of this process. None if it cannot run again: a notebook, a prompt, `-c`."""
    main: Any = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:
        # The __main__ of a package does its work under any name.
        return None if name == "__main__" or name.endswith(".__main__") else ("module", name)
    path = getattr(main, "__file__", None)
    if path is None or not os.path.isfile(path):
        return None
    return ("path", os.path.abspath(path))


def run_again(main: MainModule) -> None:
    """Called in the child. Exceptions of the module pass through."""
    global _being_run_again
    kind, place = main
    module = types.ModuleType("__mp_main__")
    _being_run_again = True
    try:
        if kind == "module":
            content = runpy.run_module(place, run_name="__mp_main__", alter_sys=True)
        else:
            content = runpy.run_path(place, run_name="__mp_main__")
    finally:
        _being_run_again = False
    module.__dict__.update(content)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module


def is_being_run_again() -> bool:
    """True if a main module without the guard calls `estimate`."""
    return _being_run_again
