"""Which line of the user's code something comes from.

The user's code is what lies neither in torch nor in an installed package, nor in Python's own library, nor here; and the
package that `-m` names, installed or not. The innermost such frame is the line; where there is none, the innermost frame
of any Python code.
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
    """Or as it is, where the folder that we are in was deleted."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


_FOLDER = os.path.join(absolute(""), "")  # empty where there is none


def _shown(file: str) -> str:
    """As seen from where the command was started."""
    return os.path.normpath(file[len(_FOLDER) :]) if _FOLDER and file.startswith(_FOLDER) else file


class Line(NamedTuple):
    file: str
    line: int
    function: str

    def as_record(self) -> dict[str, Any]:
        return {**self._asdict(), "file": _shown(self.file), "code": linecache.getline(self.file, self.line).strip()}


NO_FRAME = Line("", 0, "no Python frame")

_RUN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # plimsoll/run


def _library_folders() -> list[str]:
    folders = [os.path.dirname(_RUN_FOLDER)]
    folders += [path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib")]
    try:
        folders += [*site.getsitepackages(), site.getusersitepackages()]
    except AttributeError:  # virtualenv's site module of old
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
_run_as_module: list[str] = []  # the files and folders of the package that -m names
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


_seen_running: set[str] = set()  # Python's, whatever their names


def _is_python(file: str) -> bool:
    # A trace with native frames names C++ and assembler sources and libraries too.
    return file.endswith((".py", ".pyw")) or file in _seen_running


def runs(file: str) -> None:
    """`file` is the co_filename of code that runs: a script's name need not end in .py."""
    if file not in _seen_running and not file.startswith("<"):
        _seen_running.add(file)
        _is_user_file.pop(file, None)


def runs_as_module(name: str) -> None:
    """`python -m name` runs: its package is the user's, unless it is torch, Python's own (a launcher, a profiler) or ours."""
    top = name.partition(".")[0]
    if top in ("torch", __name__.partition(".")[0]) or top in sys.stdlib_module_names:
        return
    try:
        spec = importlib.util.find_spec(top)  # of a top-level name: nothing is imported
    except (ImportError, ValueError):  # the interpreter will say what is wrong with it
        return
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        _run_as_module.extend(absolute(folder) + os.sep for folder in spec.submodule_search_locations)
    elif spec.origin is not None:
        _run_as_module.append(absolute(spec.origin))
    _is_user_file.clear()


def user_line(frame: FrameType | None) -> Line | None:
    """Of a running frame and its callers; None where there is no Python code but ours."""
    innermost: Line | None = None
    while frame is not None:
        code = frame.f_code
        runs(code.co_filename)
        if is_user_file(code.co_filename):
            return Line(code.co_filename, frame.f_lineno, code.co_name)
        if innermost is None and not code.co_filename.startswith(_RUN_FOLDER + os.sep):
            innermost = Line(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return innermost


def line_or_backward(frame: FrameType | None, backward: Line | None) -> Line:
    """The user's line that is running. On a thread of autograd's there is none, though torch's own Python may run there
    (FSDP's hooks): then it is the line that called backward."""
    line = user_line(frame)
    if line is not None and is_user_file(line.file):
        return line
    if backward is not None:
        return backward._replace(function=f"autograd: backward in {backward.function}")
    return line or NO_FRAME


def user_line_of_trace(frames: Sequence[dict[str, Any]]) -> Line | None:
    """Of the frames in the allocator's trace, the innermost first."""
    for frame in frames:
        if is_user_file(frame["filename"]):
            return Line(frame["filename"], frame["line"], frame["name"])
    for frame in frames:
        if _is_python(frame["filename"]) and not frame["filename"].startswith(_RUN_FOLDER + os.sep):
            return Line(frame["filename"], frame["line"], frame["name"])
    return None


def reached_by_user(frames: Sequence[dict[str, Any]]) -> bool:
    return any(is_user_file(frame["filename"]) for frame in frames)
