"""A result in a notebook: the verdict, the peak as a bar, and tables. No scripts, no files, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from plimsoll.amounts import count_of, text_of

if TYPE_CHECKING:
    from plimsoll.api.result import Result

_COLOURS = "#4878a8 #e49444 #d1615d #85b6b2 #6a9f58 #e7ca60 #a87c9f #f1a2a9 #967662 #b8b0ac".split()
_MODULES = 40
_STEPS = 20
_CELL = "padding:2px 10px;text-align:right"
_FIRST = "padding:2px 10px;text-align:left"


def html_of(result: Result) -> str:
    """Self-contained, without anything that runs."""
    parts = [
        f"<p><b>{escape(result.name)}</b>: {escape(result.verdict)} ({escape(result.gpu.name)})</p>",
        _books(result),
        _peak(result),
        _steps(result),
        _modules(result),
        *(f"<p>{escape(note)}</p>" for note in result.notes),
    ]
    return f'<div class="plimsoll">{"".join(parts)}</div>'


def _books(result: Result) -> str:
    peak, card = result.peak, result.gpu.memory
    books = {"active": peak.active, "reserved": peak.reserved, "device": peak.device}
    return _table("", ("book", "peak", "of the card"), _shares(books, card))


def _shares(amounts: Mapping[str, int], whole: int) -> list[Sequence[str]]:
    return [(name, text_of(count), f"{100 * count / whole:.1f} %" if whole else "") for name, count in amounts.items()]


def _peak(result: Result) -> str:
    place = f"The peak: {result.peak.place}"
    categories = result.categories
    if not categories:
        why = result.attribution
        return f"<p>{escape(place)}</p>" + (f"<p>{escape(why)}</p>" if why else "")
    total = max(sum(categories.values()), 1)
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(categories)}
    pieces = "".join(
        f'<div title="{escape(name)}: {text_of(count)}" '
        f'style="width:{100 * count / total:.3f}%;background:{colours[name]}"></div>'
        for name, count in categories.items()
    )
    bar = f'<div style="display:flex;height:18px;width:100%;max-width:720px;margin:4px 0">{pieces}</div>'
    swatch = '<span style="display:inline-block;width:10px;height:10px;margin-right:6px;background:{}"></span>'
    marks = [swatch.format(colours[name]) for name in categories]
    return f"<p>{escape(place)}</p>{bar}{_table('', ('category', 'bytes', 'share'), _shares(categories, total), marks)}"


def _steps(result: Result) -> str:
    if not result.steps:
        return ""
    phases = list(dict.fromkeys(name for step in result.steps for name in step.phases))
    rows = []
    for step in result.steps[:_STEPS]:
        by_phase = [text_of(step.phases[name].active) if name in step.phases else "" for name in phases]
        rows.append([str(step.step), text_of(step.active), text_of(step.reserved), *by_phase])
    title = "Peaks by step; of each phase, the active peak"
    return _table(title, ("step", "active", "reserved", *phases), rows) + _left_off(len(result.steps), _STEPS, "steps")


def _modules(result: Result) -> str:
    if not result.modules:
        return ""
    columns = list(result.categories)
    rows = []
    for module in result.modules[:_MODULES]:
        name = (module.name or "(the model)") + (" *" if module.fsdp_unit else "")
        at_peak = [text_of(module.at_peak[column]) if module.at_peak.get(column) else "-" for column in columns]
        rows.append([name, count_of(module.parameters), text_of(module.total), *at_peak, text_of(module.highest)])
    titles = ("module", "parameters", "at peak", *columns, "highest")
    table = _table("The peak by module (*: an FSDP unit)", titles, rows)
    return table + _left_off(len(result.modules), _MODULES, "modules")


def _table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]], marks: Sequence[str] | None = None) -> str:
    """`marks` are HTML before the first cell of each row; everything else is text."""
    head = _row("th", titles, "")
    body = "".join(_row("td", row, marks[i] if marks else "") for i, row in enumerate(rows))
    caption = f"<p>{escape(title)}</p>" if title else ""
    return f'{caption}<table style="border-collapse:collapse">{head}{body}</table>'


def _row(tag: str, cells: Sequence[str], mark: str) -> str:
    inner = "".join(
        f'<{tag} style="{_FIRST if i == 0 else _CELL}">{mark if i == 0 else ""}{escape(cell)}</{tag}>'
        for i, cell in enumerate(cells)
    )
    return f"<tr>{inner}</tr>"


def _left_off(there: int, shown: int, what: str) -> str:
    return f"<p>and {there - shown} more {escape(what)}</p>" if there > shown else ""
