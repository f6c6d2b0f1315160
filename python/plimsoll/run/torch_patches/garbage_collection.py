"""Python's cyclic collector, where `plimsoll run` spares torch work.

The collector runs by how many containers were made and are alive. Where torch would have made many, it would have run, and have freed
what lies in a cycle, memory of the device with it. So that it runs here about when it does there, as many empty ones are made. A full
collection takes a tenth of a second: beyond a number that lets all generations pass some times, no more are made.
"""

import gc

_MOST = 300_000
_left = _MOST


def make_up_for(containers: int) -> None:
    """Makes as many containers, lets them be seen, and drops them."""
    global _left
    if gc.isenabled() and _left:
        number = min(containers, _left)
        _left -= number
        _ = [[] for _ in range(number)]
