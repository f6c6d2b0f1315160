"""Wraps functions of torch and of libraries."""

import functools
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

Function = Callable[..., Any]
Wrap = Callable[[Any], Any]


def wrapper(call: Function) -> Wrap:
    """A decorator that wraps functions: a call of the wrapped function becomes `call(function, *args, **kwargs)`.

    >>> @wrapper
    ... def doubled(function, *args):
    ...     return 2 * function(*args)
    >>> doubled(abs)(-3)
    6
    """

    def wrap(function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return call(function, *args, **kwargs)

        return wrapped

    return wrap


def replace(owner: Any, name: str, wrap: Wrap, undo: ExitStack | None = None) -> None:
    """Replaces an attribute by `wrap(attribute)` until `undo` is closed. A static method stays static."""
    held = inspect.getattr_static(owner, name)
    value = wrap(getattr(owner, name))
    if undo is not None:
        undo.callback(setattr, owner, name, held)
    setattr(owner, name, staticmethod(value) if isinstance(held, staticmethod) else value)


def around(owner: Any, name: str, undo: ExitStack | None = None) -> Callable[[Function], Function]:
    """Decorates the wrapper of a function that it replaces: see `wrapper` and `replace`."""

    def install(call: Function) -> Function:
        replace(owner, name, wrapper(call), undo)
        return call

    return install
