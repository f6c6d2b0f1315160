"""The end of multiprocessing's children. It catches what they die of, and a forked one leaves without atexit."""

import functools
import sys
from collections.abc import Callable
from typing import Any


def install(util: Any, ended: Callable[[BaseException | None], None], over: Callable[[], None]) -> None:
    """`util`: multiprocessing's. `ended(error)` as the child's work ends, `over()` once its own finalizers ran."""
    original = util._exit_function

    @functools.wraps(original)
    def exit_function(*args: Any, **kwargs: Any) -> Any:
        # It is called from the `finally` around the child's work: what ended that is still in flight.
        ended(sys.exc_info()[1])
        try:
            return original(*args, **kwargs)
        finally:
            over()

    util._exit_function = exit_function
