"""What `plan` and `estimate` have in common: the command's document, with names."""

from __future__ import annotations

import json
from typing import Any

from plimsoll.amounts import text_of
from plimsoll.api import notebook
from plimsoll.api.parts import Cause, Gpu, Module, OutOfMemory, Peak, Step, Verdict


class Result:
    """The answer to one question, as the command gave it. It does not change.

    fits            True, False, or None where there is no verdict
    barely          it fits, but only just (parts.Verdict.only_just)
    spare           bytes that are left on the card, below zero if it does not fit; None: not known
    estimated       bytes of the total that are an estimate: context, NCCL, library handles
    reserve         bytes that had to be left, as the caller asked
    gpu             the card (parts.Gpu)
    peak            the books at their highest, and where (parts.Peak)
    categories      what was active at the peak, name -> bytes, largest first; empty where that is not known
    modules         whose it was (parts.Module), parents before children
    causes          why it was there (parts.Cause), largest first
    before_steps    peaks of what came before the first step (parts.Step), or None
    steps           peaks of each step, and of its phases (parts.Step)
    oom             where memory ran out (parts.OutOfMemory), or None
    alloc_retries   how often the caching allocator had to empty its cache
    notes           sentences that a reader must know
    judgement       the verdict with its reason (parts.Verdict); verdict: its sentence
    name            of the subject
    attribution     why categories, modules and causes are not known, where they are not; else None

    `str(result)` is the command's report, `result.explain()` says why the peak is what it is, and a notebook shows tables.
    There is no truth value: `if result:` would be true of what does not fit; ask for `result.fits`.
    """

    def __init__(self, document: str, text: str) -> None:
        self._document = document
        self._text = text
        values = self._values = json.loads(document)
        self.fits: bool | None = values["fits"]
        self.judgement = Verdict.read(values["verdict"])
        self.barely = self.judgement.only_just
        self.spare = self.judgement.spare
        self.estimated = self.judgement.estimated
        self.reserve = self.judgement.reserve
        self.verdict = self.judgement.sentence
        self.gpu = Gpu.read(values["gpu"])
        self.peak = Peak.read(values["peak"])
        self.modules = [Module.read(module) for module in values.get("modules") or ()]
        self.causes = [Cause.read(cause) for cause in values.get("causes") or ()]
        self.before_steps = Step.read(values["before_steps"]) if values["before_steps"] else None
        self.steps = [Step.read(step) for step in values["steps"]]
        self.oom = OutOfMemory.read(values["oom"]) if values["oom"] else None
        self.alloc_retries: int = values["alloc_retries"]
        self.notes: list[str] = list(values.get("notes") or ())
        self.attribution: str | None = values.get("attribution")

    @property
    def name(self) -> str:
        """The name of the subject."""
        raise NotImplementedError

    @property
    def categories(self) -> dict[str, int]:
        return dict(self.peak.categories)

    def to_json(self) -> str:
        """The document, as the command wrote it."""
        return self._document

    def to_dict(self) -> dict[str, Any]:
        """The document, read. It is the caller's own copy."""
        values: dict[str, Any] = json.loads(self._document)
        return values

    def explain(self) -> str:
        """Why the peak is what it is: where it was, then a sentence for each cause, the largest first."""
        lines = [f"{text_of(self.peak.active)} active at the peak: {self.peak.place}."]
        lines += [f"  {cause.sentence}" for cause in self.causes]
        if not self.causes:
            lines += [f"  {name}: {text_of(count)}." for name, count in self.categories.items()]
        if len(lines) == 1:
            lines.append(f"  {self.attribution or 'The causes are not known.'}")
        return "\n".join([self.verdict, *lines, *self.notes])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return notebook.html_of(self)
