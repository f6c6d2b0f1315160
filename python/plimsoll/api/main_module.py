"""The program that calls `estimate`, seen again in the child: its functions are found by name in `__main__`.

As multiprocessing's spawn does it: the main module runs once more under the name `__mp_main__`, so that what stands below
`if __name__ == "__main__":` does not, and is then `__main__` for everyone who looks.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from typing import Any

MainModule = tuple[str, str]  # "module" and its name, or "path" and where

_being_run_again = False


def describe() -> MainModule | None:
    """How this process's main module can be run again; None where it cannot: a notebook, a prompt, `-c`."""
    main: Any = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:
        # A package's __main__ does its work whatever its name is.
        return None if name == "__main__" or name.endswith(".__main__") else ("module", name)
    path = getattr(main, "__file__", None)
    if path is None or not os.path.isfile(path):
        return None
    return ("path", os.path.abspath(path))


def run_again(main: MainModule) -> None:
    """In the child. Raises what the module raises."""
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
    """Whether `estimate` is called by a main module that lacks its guard."""
    return _being_run_again
