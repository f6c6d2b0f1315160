"""The values that a result consists of. Amounts are whole numbers of bytes; an unknown value is None, or empty.

Each class reads the object of the same name in the command's document (docs/json_schema.md). Unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from plimsoll.document_fields import GPU, MODULE, OOM, PEAK, PHASE, STEP, VERDICT, Fields, values_of

Json = Mapping[str, Any]
P = TypeVar("P", bound="Part")


class Part:
    """An object of the document. `fields` has the names of the class's fields."""

    _fields: ClassVar[Fields]

    def __init_subclass__(cls, fields: Fields) -> None:
        cls._fields = fields

    @classmethod
    def read(cls: type[P], json: Json) -> P:
        return cls(**cls._values(json))

    @classmethod
    def _values(cls, json: Json) -> dict[str, Any]:
        return values_of(cls._fields, json)


@dataclass(frozen=True)
class Verdict(Part, fields=VERDICT):
    """Whether it fits, and why. sentence: the verdict for people.

    outcome: "fits", "out of memory", "too little left", "script failed", "stopped", "no verdict" or "not run".
    only_just: it fits, and less is left than the part of the total that is an estimate, or PyTorch had to flush its
    memory cache. spare: memory that is left, below zero if the card has too little; None: not known. estimated: the part
    of the device book that the GPU's profile estimates. reserve: memory that the caller holds back.
    """

    outcome: str
    only_just: bool
    spare: int | None
    estimated: int
    reserve: int
    sentence: str


@dataclass(frozen=True)
class Gpu(Part, fields=GPU):
    """The GPU, as its profile describes it."""

    name: str
    device_name: str
    memory: int
    compute_capability: str
    multiprocessors: int


@dataclass(frozen=True)
class Peak(Part, fields=PEAK):
    """The three books, each at its highest, and when active was highest.

    active: tensors, as the caching allocator rounds them. allocated: active without memory that only waits for a stream.
    reserved: the allocator's segments. device: all memory of the card, as nvidia-smi would show it; device_parts sum to
    it. step is None before the first step. module and stage are those of FSDP2.
    """

    active: int
    allocated: int
    reserved: int
    device: int
    segments: int
    step: int | None
    phase: str | None
    module: str | None
    stage: str | None
    categories: dict[str, int]
    device_parts: dict[str, int]

    @classmethod
    def _values(cls, json: Json) -> dict[str, Any]:
        values = super()._values(json)
        return values | {"categories": values["categories"] or {}}

    @property
    def place(self) -> str:
        """
        >>> Peak(1, 1, 1, 1, 1, 1, "backward", "layers.3", "backward", {}, {}).place
        'step 1, backward, in layers.3'
        """
        when = "before the first step" if self.step is None else f"step {self.step}"
        if self.step is not None and self.phase:
            when += f", {self.phase}"
        return when + (f", in {self.module}" if self.module else "")


@dataclass(frozen=True)
class Phase(Part, fields=PHASE):
    """The peaks of one phase (forward, backward, optimizer, other), and what there was at its end."""

    active: int
    allocated: int
    reserved: int
    active_end: int
    reserved_end: int


@dataclass(frozen=True)
class Step(Part, fields=STEP):
    """The peaks of one step, also by phase. step is None for what came before the first or after the last."""

    step: int | None
    active: int
    allocated: int
    reserved: int
    phases: dict[str, Phase]

    @classmethod
    def _values(cls, json: Json) -> dict[str, Any]:
        values = super()._values(json)
        return values | {"phases": {name: Phase.read(phase) for name, phase in values["phases"].items()}}


@dataclass(frozen=True)
class Module(Part, fields=MODULE):
    """One module: name is its path from the root ("" is the root itself).

    highest: the most that was active on the card while it ran. total, at_peak: what it and all below had at the peak,
    and by category. parameters: of it and all below, before sharding.
    """

    name: str
    type: str
    fsdp_unit: bool
    parameters: int
    highest: int
    total: int
    at_peak: dict[str, int]


@dataclass(frozen=True)
class Cause:
    """Why some of the peak's memory was there: in a few words, and as a sentence. owners: module and bytes of each."""

    bytes: int
    category: str
    why: str
    sentence: str
    owners: dict[str, int]

    @classmethod
    def read(cls, json: Json) -> Cause:
        values = {name: json[name] for name in cls.__dataclass_fields__}
        return cls(**values | {"owners": {owner["name"]: owner["bytes"] for owner in json["owners"]}})


@dataclass(frozen=True)
class CodeLine:
    """Live allocations, or values read back, of one line of code."""

    bytes: int
    count: int
    file: str | None
    line: int | None
    function: str | None
    code: str | None
    op: str | None = None
    decided_shape: bool = False

    @classmethod
    def read(cls, json: Json) -> CodeLine:
        return cls(**{name: json[name] for name in cls.__dataclass_fields__ if name in json})

    @property
    def place(self) -> str:
        if not self.file:
            return "(not from a line of Python)"
        return f"{self.file}:{self.line} {self.function or ''}".rstrip()


@dataclass(frozen=True)
class OutOfMemory(Part, fields=OOM):
    """Where memory ran out. requested is 0 where that is not known; device_parts is empty of a plan."""

    requested: int
    device_free: int
    device_total: int
    active: int
    reserved: int
    step: int | None
    phase: str | None
    module: str | None
    message: str
    file: str | None
    line: int | None
    function: str | None
    code: str | None
    device_parts: dict[str, int]
    top: tuple[CodeLine, ...]

    @classmethod
    def _values(cls, json: Json) -> dict[str, Any]:
        values = super()._values(json)
        top = tuple(CodeLine.read(entry) for entry in values["top"] or ())
        return values | {"device_parts": values["device_parts"] or {}, "top": top}


@dataclass(frozen=True)
class ScriptError:
    """The exception that a script ended with."""

    type: str
    message: str
