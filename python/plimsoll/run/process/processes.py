"""The end of a child of multiprocessing, which catches the child's exception. A forked child ends without atexit."""

import functools
import sys
from collections.abc import Callable
from typing import Any


def install(util: Any, ended: Callable[[BaseException | None], None], over: Callable[[], None]) -> None:
    """`util`: multiprocessing.util. Calls `ended(error)` after the child's work, and `over()` after its finalizers."""
    original = util._exit_function

    @functools.wraps(original)
    def exit_function(*args: Any, **kwargs: Any) -> Any:
        # Called from the `finally` around the child's work, so the exception is still being handled.
        ended(sys.exc_info()[1])
        try:
            return original(*args, **kwargs)
        finally:
            over()

    util._exit_function = exit_function
