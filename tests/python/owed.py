"""Which tests are repeated where there is not the time for all that a change concerns. The others are owed: the next check begins with them.

Never owed is what failed, what is new, and what was itself changed.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Past(NamedTuple):
    """What is known of a test from earlier checks."""

    own: str  # the sums that it ran with last: see depends_on.py
    all: str  # those that it passed with; empty where it failed
    seconds: float
    owed: int = 0  # how many checks have left it for later


class Unit(NamedTuple):
    """Tests that are run together or not at all, because they share what takes long to make."""

    file: str
    tests: tuple[str, ...]


def chosen(units: Iterable[Unit], past: dict[str, Past], own: dict[str, str], seconds: float) -> set[Unit]:
    """Those that must run, and of the others what the rest of the time is enough for. `own`: by file."""
    units = list(units)
    found = {unit for unit in units if any(not may_be_owed(past.get(test), own[unit.file]) for test in unit.tests)}
    left = seconds - sum(_seconds(unit, past) for unit in found)
    for unit in _by_turns([unit for unit in units if unit not in found], past):
        if _seconds(unit, past) <= left:
            found.add(unit)
            left -= _seconds(unit, past)
    return found


def may_be_owed(past: Past | None, own: str) -> bool:
    return past is not None and past.all != "" and past.own == own


def _by_turns(units: list[Unit], past: dict[str, Past]) -> list[Unit]:
    """The longest owed first; then one of each file, a second of each, and so on: another one first after another change."""
    files: dict[str, list[Unit]] = defaultdict(list)
    for unit in sorted(units, key=lambda unit: zlib.crc32(repr(unit.tests).encode())):
        files[unit.file].append(unit)
    turns = [(turn, unit) for units_of_file in files.values() for turn, unit in enumerate(units_of_file)]
    return [unit for turn, unit in sorted(turns, key=lambda found: (-_owed(found[1], past), found[0], found[1]))]


def _seconds(unit: Unit, past: dict[str, Past]) -> float:
    return sum(past[test].seconds for test in unit.tests if test in past)


def _owed(unit: Unit, past: dict[str, Past]) -> int:
    return max(past[test].owed for test in unit.tests)
