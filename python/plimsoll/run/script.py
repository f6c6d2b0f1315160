"""Runs the user's script in this process, like `python script.py` and `python -m module`."""

import importlib
import importlib.machinery
import io
import os
import runpy
import sys
import types
from typing import Any

from plimsoll.run.contents import lines

_RUNPY: Any = runpy  # The functions that the interpreter calls for -m and for a folder are not public.


class NoSuchModule(ImportError):
    """The module after -m does not exist, or it is a package without a __main__."""


class Script:
    """The command line: `script.py args…` or `-m module args…`."""

    def __init__(self, arguments: list[str]) -> None:
        self.is_module = arguments[:1] == ["-m"]
        rest = arguments[1:] if self.is_module else arguments
        if not rest:
            raise SystemExit("usage: __main__.py (script.py | -m module) args...")
        self.name = rest[0]
        self.arguments = rest[1:]
        self._is_folder = not self.is_module and (os.path.isdir(self.name) or self.name.endswith((".zip", ".pyz")))

    def run(self) -> None:
        """Returns or raises like the script, with this file's frames at the top of the traceback."""
        self._set_paths()
        main = _fresh_main()
        if self.is_module:
            sys.argv = ["-m", *self.arguments]
            # Checks that the module exists: the next call would end the interpreter. Imports the module's parent packages, but
            # not the module.
            _RUNPY._get_module_details(self.name, NoSuchModule)
            lines.runs_as_module(self.name)
            _RUNPY._run_module_as_main(self.name)  # The interpreter calls the same function for -m.
            return
        sys.argv = [self.name, *self.arguments]
        path = _full(self.name)
        if self._is_folder:
            sys.path[0:0] = [path]
            _RUNPY._run_module_as_main("__main__", alter_argv=False)
            return
        try:
            with io.open_code(path) as file:
                source = file.read()
        except OSError as error:
            sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
            raise SystemExit(2) from None
        main.__file__ = path
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
        main.__dict__["__cached__"] = None
        lines.runs(path)
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)

    def _set_paths(self) -> None:
        # Python put the folder of __main__.py first, unless -P was given.
        if getattr(sys.flags, "safe_path", False):
            return
        if self._is_folder:
            del sys.path[0]
            return
        try:
            sys.path[0] = os.getcwd() if self.is_module else os.path.dirname(os.path.realpath(self.name))
        except OSError:  # A deleted folder: Python continues without it.
            del sys.path[0]


def _full(name: str) -> str:
    """The absolute path as Python writes it, with the dots of the command line. argv stays unchanged."""
    try:
        return os.path.join(os.getcwd(), name)
    except OSError:
        return name


def _fresh_main() -> types.ModuleType:
    """A new `__main__` for the script: pickling and spawned children look up names in it."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    main.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = main
    return main


def users_part(error: BaseException) -> types.TracebackType | None:
    """The error's traceback without the frames of Plimsoll and Python above the user's code."""
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
    above = {runpy.__file__, "<frozen runpy>", importlib.__file__, "<frozen importlib._bootstrap>"}
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file not in above and not lines.absolute(file).startswith(own):
            break
        trace = trace.tb_next
    return trace


def strip_own_frames(error: BaseException) -> types.TracebackType | None:
    trace = users_part(error)
    return trace if trace is not None or isinstance(error, SyntaxError) else error.__traceback__
