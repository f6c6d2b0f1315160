"""Keeps the pace of Python's cyclic garbage collector if `plimsoll run` skips work of torch.

The collector runs after a number of new containers. In the skipped work torch would have made many, so the collector would have
run and freed cycles, with their device memory. To make it run at about the same time, `make_up_for` makes the same number of
empty containers. A full collection takes a tenth of a second, so the total has a limit, after several full collections.
"""

import gc

_MAX_CONTAINERS = 300_000
_left = _MAX_CONTAINERS


def make_up_for(containers: int) -> None:
    """Makes this number of containers and drops them."""
    global _left
    if gc.isenabled() and _left:
        number = min(containers, _left)
        _left -= number
        _ = [[] for _ in range(number)]
