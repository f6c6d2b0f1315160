"""The threads on which torch runs backward, at the end of the process.

One may still be putting away what the last backward left, after the script has gone on from it. If it then needs the interpreter's
lock and the interpreter is being taken apart, Python ends the thread, and with it the process, by an abort. A script that ends
right after a step, as with --steps, on a machine that is busy, is where that is seen.
"""

import os
import time
from collections.abc import Iterator

_NAME = "pt_autograd"
_LOOKS = 2  # A thread sleeps for a moment also when it waits for a lock that this one gives away between two looks.


def let_rest(seconds: float = 0.5, tasks: str = "/proc/self/task") -> bool:
    """Waits until they sleep, for so long at most, and gives the interpreter's lock away meanwhile. Whether they do."""
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
