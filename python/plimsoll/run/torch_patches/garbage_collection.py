"""Keeps the pace of Python's cyclic garbage collector if `plimsoll run` skips work of torch.

The collector runs after a number of new containers. In the skipped work torch would have made many, so the collector would have
freed cycles, with their device memory. So `make_up_for` makes the same number of empty containers, up to a total of several full
collections, which take a tenth of a second each.
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
