"""Snapshots as text, in the forms of torch's trackers. Tables need no other package."""

from collections.abc import Iterable, Mapping, Sequence

from torch.distributed._tools.mem_tracker import _RefType, _State

from plimsoll.trackers.snapshots import TOTAL, Category, Snapshot

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def divisor_of(units: str) -> int:
    if units not in _UNITS:
        raise ValueError(f"unknown unit {units!r}: use one of {', '.join(_UNITS)}")
    return _UNITS[units]


def _label(category: Category) -> str:
    return str(category.value) if isinstance(category, _RefType) else category


def _amount(count: int, units: str) -> int | float:
    divisor = divisor_of(units)
    return count if divisor == 1 else round(count / divisor, 2)


def _shown(snapshot: Snapshot, units: str) -> Iterable[tuple[str, Mapping[Category, int]]]:
    for device, categories in snapshot.items():
        if _amount(categories[TOTAL], units) > 0:
            yield str(device), categories


def plain(snapshot: Snapshot, units: str) -> str:
    if not snapshot:
        return "No memory tracked.\n"
    lines: list[str] = []
    for device, categories in _shown(snapshot, units):
        lines.append(f"Device: {device}")
        lines.extend(f"\t{_label(key)}: {_amount(count, units)} {units}" for key, count in categories.items())
    return "".join(f"{line}\n" for line in lines)


def table(snapshot: Snapshot, units: str) -> str:
    if not snapshot:
        return "No memory tracked.\n"
    rows = [{"Device": device, **_cells(categories, units)} for device, categories in _shown(snapshot, units)]
    return _grid(rows, first=["Device", *(_label(key) for key in next(iter(snapshot.values())))])


def states_plain(states: Mapping[_State, Sequence[Snapshot]], units: str) -> str:
    text = ""
    for state, calls in states.items():
        text += f"{state.value}\n"
        for number, snapshot in enumerate(calls, start=1):
            text += f"# {number}:\n{plain(snapshot, units)}"
    return f"{text}\n"


def states_table(states: Mapping[_State, Sequence[Snapshot]], units: str) -> str:
    rows, last = [], None
    for state, calls in states.items():
        for number, snapshot in enumerate(calls, start=1):
            call = f"{state.value} # {number}"
            for device, categories in _shown(snapshot, units):
                rows.append(
                    {"State & Call": call if call != last else "", "Device": device, **_cells(categories, units)}
                )
                last = call
    return _grid(rows)


def _cells(categories: Mapping[Category, int], units: str) -> Mapping[str, str]:
    return {_label(key): f"{_amount(count, units)} {units}" for key, count in categories.items()}


def _grid(rows: Sequence[Mapping[str, str]], first: Sequence[str] = ()) -> str:
    """A simple reStructuredText table with the layout of `tabulate`, which torch's trackers use: a column is two characters wider
    than its title, an empty first cell is a comment, and no line ends with spaces."""
    titles = list(first)
    for row in rows:
        titles.extend(title for title in row if title not in titles)
    if not titles:
        return "\n"
    if TOTAL in titles:  # Last, also after the categories of later rows.
        titles.append(titles.pop(titles.index(TOTAL)))
    body = [[row.get(title, "") for title in titles] for row in rows]
    for cells in body:
        cells[0] = cells[0] or ".."
    widths = [max(len(title) + 2, *(len(cells[column]) for cells in body), 0) for column, title in enumerate(titles)]
    border = ["=" * width for width in widths]
    lines = (border, titles, border, *body, border)
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in lines)
