"""Waits for the threads on which torch runs backward, before the process ends.

After the last backward, such a thread may still free the graph and with it Python callbacks (FSDP2 queues some). For that
it needs the interpreter's lock. If the interpreter is being finalized by then, Python ends the thread, which aborts the process.
"""

import atexit
import functools
import os
import time
from collections.abc import Iterator

_NAME = "pt_autograd"
# A thread that waits for the interpreter's lock also sleeps; it runs when this thread sleeps between two looks.
_LOOKS = 2


@functools.cache
def wait_at_exit() -> None:
    """Makes this process wait when it ends. Costs nothing if torch started no such thread."""
    atexit.register(wait)


def wait(seconds: float = 2.0, tasks: str = "/proc/self/task") -> bool:
    """Waits until all these threads sleep, at most `seconds`; releases the interpreter's lock meanwhile. True if they sleep."""
    until = time.monotonic() + seconds
    asleep = 0
    while asleep < _LOOKS:
        states = list(_states(tasks))
        if not states:
            return True
        asleep = asleep + 1 if all(state == "S" for state in states) else 0
        if asleep < _LOOKS:
            if time.monotonic() > until:
                return False
            time.sleep(0.001)
    return True


def _states(tasks: str) -> Iterator[str]:
    try:
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/stat", encoding="ascii", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name.startswith(_NAME):
                yield rest.split()[0]
    except (OSError, IndexError):
        return  # A thread that has just ended, or no such folder.
