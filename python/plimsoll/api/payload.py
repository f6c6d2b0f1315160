"""The call for the child: a function by name or by value with its arguments, or a script."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plimsoll.api import main_module

Callee = Callable[..., object] | str | os.PathLike[str]
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]  # the function, its arguments
_PROTOCOL = 4  # the child may have another interpreter


@dataclass
class Payload:
    """name: for messages. call: (function, args, kwargs), pickled; None for a script, which has a command line."""

    name: str
    folder: str  # for the child's files
    stdout: int  # descriptors of the child's streams
    stderr: int
    call: bytes | None = None
    named: str | None = None  # "module:function", in place of the function in `call`
    script: Sequence[str] | None = None
    main: main_module.MainModule | None = None
    paths: Sequence[str] = ()  # for sys.path
    paths_are_all: bool = True  # if not, they come before the child's own paths
    argv: Sequence[str] = ()

    def write(self, path: Path) -> None:
        path.write_bytes(pickle.dumps(asdict(self), _PROTOCOL))

    @classmethod
    def read(cls, path: Path) -> Payload:
        return cls(**pickle.loads(path.read_bytes()))


def of_script(fn: Callee) -> str | None:
    """The path of a script, or None for a function."""
    if isinstance(fn, os.PathLike):
        return os.fspath(fn)
    return fn if isinstance(fn, str) and fn.endswith(".py") else None


def fill(payload: Payload, fn: Callee, args: Sequence[Any], kwargs: Mapping[str, Any], same_python: bool) -> None:
    """Raises TypeError if `fn` cannot be called or sent, ValueError if the child cannot find the function, and FileNotFoundError
    if the script does not exist."""
    script = of_script(fn)
    if script is not None:
        if kwargs:
            raise TypeError(f"a script takes a command line, not keywords: {', '.join(kwargs)}")
        if not os.path.isfile(script):
            raise FileNotFoundError(f"no such script: {script}")
        payload.script = [script, *map(str, args)]
        return
    payload.argv = list(sys.argv)
    payload.paths = list(sys.path) if same_python else _own_paths()
    payload.paths_are_all = same_python
    if isinstance(fn, str):
        module, colon, function = fn.partition(":")
        if not (colon and module and function):
            raise ValueError(
                f"{fn!r} is neither the path of a script, which ends in .py, nor a function as 'package.module:function'"
            )
        payload.named = fn
    elif not callable(fn):
        raise TypeError(f"estimate() needs a function or the path of a script, found {type(fn).__name__}")
    payload.call = _pickled((None if payload.named else fn, tuple(args), dict(kwargs)), payload.name)
    if _refers_to_main(payload.call):
        payload.main = main_module.describe()


def _pickled(call: Call, name: str) -> bytes:
    try:
        data = pickle.dumps(call, _PROTOCOL)
        if not _refers_to_main(data) or main_module.describe() is not None:
            return data
        reason = "it was defined in a notebook or at a prompt"
    except Exception as error:  # pickle and objects raise many types
        reason = str(error)
    _check_arguments(call, name)
    by_value = _cloudpickle()
    if by_value is None:
        raise ValueError(
            f"{name} cannot be sent to the process with the pretend GPU by its name ({reason}), and cloudpickle, which "
            "sends functions of notebooks, lambdas and closures as they are, is not installed: pip install cloudpickle, "
            "or move the function to the top level of a module or a script"
        )
    try:
        return bytes(by_value.dumps(call, _PROTOCOL))
    except Exception as error:
        raise ValueError(f"{name} cannot be sent to the process with the pretend GPU: {error}") from error


def _check_arguments(call: Call, name: str) -> None:
    """Raises TypeError with the name of an argument that cannot be sent."""
    _, args, kwargs = call
    pickler = _cloudpickle() or pickle
    named = [
        *((f"argument {i}", value) for i, value in enumerate(args)),
        *((f"argument {k!r}", kwargs[k]) for k in kwargs),
    ]
    for which, value in named:
        try:
            pickler.dumps(value, _PROTOCOL)
        except Exception as error:
            raise TypeError(
                f"{which} of {name}, a {type(value).__name__}, cannot be sent to the process with the pretend GPU "
                f"({error}): make it inside the function, or pass the values that it is made from"
            ) from error


def _refers_to_main(data: bytes) -> bool:
    return b"__main__" in data


def _cloudpickle() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return None


def _own_paths() -> list[str]:
    """sys.path without this interpreter's own library: another interpreter has its own."""
    libraries = {path for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))}
    prefixes = tuple(os.path.join(path, "") for path in libraries)
    return [
        path
        for path in sys.path
        if path not in libraries and not path.startswith(prefixes) and not path.endswith(".zip")
    ]
