"""The end of a child of multiprocessing, which catches the child's exception. A forked child ends without atexit."""

import sys
from collections.abc import Callable
from typing import Any

from plimsoll.wrapping import around


def install(util: Any, ended: Callable[[BaseException | None], None], over: Callable[[], None]) -> None:
    """`util`: multiprocessing.util. Calls `ended(error)` after the child's work, and `over()` after its finalizers."""

    @around(util, "_exit_function")
    def exit_function(original: Any, *args: Any, **kwargs: Any) -> Any:
        # Called from the `finally` around the child's work, so the exception is still being handled.
        ended(sys.exc_info()[1])
        try:
            return original(*args, **kwargs)
        finally:
            over()
