"""The line of the user's code for a stack.

User code is all Python code outside of torch, installed packages, Python's own library and this package. The package that
`-m` names is user code too. The line is that of the innermost frame of user code, or else of any Python code.
"""

import importlib.util
import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple


def absolute(path: str) -> str:
    """`path` itself if the working directory was deleted."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


_FOLDER = os.path.join(absolute(""), "")  # empty if the working directory was deleted


def _shown(file: str) -> str:
    """Relative to the folder in which the command was started."""
    return os.path.normpath(file[len(_FOLDER) :]) if _FOLDER and file.startswith(_FOLDER) else file


class Line(NamedTuple):
    file: str
    line: int
    function: str

    def as_record(self) -> dict[str, Any]:
        return {**self._asdict(), "file": _shown(self.file), "code": linecache.getline(self.file, self.line).strip()}


NO_FRAME = Line("", 0, "no Python frame")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OWN = (os.path.join(_PACKAGE, "run", ""), os.path.join(_PACKAGE, "wrapping.py"))  # of frames that are never reported


def _library_folders() -> list[str]:
    folders = [_PACKAGE]
    folders += [path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib")]
    try:
        folders += [*site.getsitepackages(), site.getusersitepackages()]
    except AttributeError:  # an old site module of virtualenv
        pass
    folders += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if torch:
        folders.append(os.path.dirname(os.path.abspath(torch)))
    seen: dict[str, None] = {}
    for folder in folders:
        seen.setdefault(folder + os.sep)
        seen.setdefault(os.path.realpath(folder) + os.sep)
    return list(seen)


_libraries: list[str] | None = None
_run_as_module: list[str] = []  # files and folders of the package that -m names
_is_user_file: dict[str, bool] = {}


def is_user_file(file: str) -> bool:
    known = _is_user_file.get(file)
    if known is None:
        global _libraries
        if _libraries is None or "torch" in sys.modules:
            _libraries = _library_folders()
        path = absolute(file)
        known = not file.startswith("<") and _is_python(file) and "torchinductor_" not in path
        known = known and (any(map(path.startswith, _run_as_module)) or not any(map(path.startswith, _libraries)))
        _is_user_file[file] = known
    return known


_seen_running: set[str] = set()  # Python files, of any name


def _is_python(file: str) -> bool:
    # A trace with native frames also names C++ and assembler sources and libraries.
    return file.endswith((".py", ".pyw")) or file in _seen_running


def runs(file: str) -> None:
    """Notes that `file` is the co_filename of running code: the name of a script may lack .py."""
    if file not in _seen_running and not file.startswith("<"):
        _seen_running.add(file)
        _is_user_file.pop(file, None)


def runs_as_module(name: str) -> None:
    """Makes the package of `python -m name` user code, unless it is torch, Python's own (a launcher, a profiler) or ours."""
    top = name.partition(".")[0]
    if top in ("torch", __name__.partition(".")[0]) or top in sys.stdlib_module_names:
        return
    try:
        spec = importlib.util.find_spec(top)  # A top-level name: this does not import anything.
    except (ImportError, ValueError):  # The interpreter reports the problem.
        return
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        _run_as_module.extend(absolute(folder) + os.sep for folder in spec.submodule_search_locations)
    elif spec.origin is not None:
        _run_as_module.append(absolute(spec.origin))
    _is_user_file.clear()


def user_line(frame: FrameType | None) -> Line | None:
    """The line for a running frame and its callers. None if they are all frames of this package."""
    innermost: Line | None = None
    while frame is not None:
        code = frame.f_code
        runs(code.co_filename)
        if is_user_file(code.co_filename):
            return Line(code.co_filename, frame.f_lineno, code.co_name)
        if innermost is None and not code.co_filename.startswith(_OWN):
            innermost = Line(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return innermost


def line_or_backward(frame: FrameType | None, backward: Line | None) -> Line:
    """The running line of user code. A thread of autograd has no such line, though torch's Python may run there (FSDP's
    hooks): then the line that called backward."""
    line = user_line(frame)
    if line is not None and is_user_file(line.file):
        return line
    if backward is not None:
        return backward._replace(function=f"autograd: backward in {backward.function}")
    return line or NO_FRAME


def user_line_of_trace(frames: Sequence[dict[str, Any]]) -> Line | None:
    """The line for frames of the allocator's trace, which has the innermost frame first."""
    for frame in frames:
        if is_user_file(frame["filename"]):
            return Line(frame["filename"], frame["line"], frame["name"])
    for frame in frames:
        if _is_python(frame["filename"]) and not frame["filename"].startswith(_OWN):
            return Line(frame["filename"], frame["line"], frame["name"])
    return None


def reached_by_user(frames: Sequence[dict[str, Any]]) -> bool:
    return any(is_user_file(frame["filename"]) for frame in frames)
