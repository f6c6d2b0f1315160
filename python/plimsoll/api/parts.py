"""The values that a result consists of. Amounts are whole numbers of bytes; what is not known is None, or empty.

Each is read from the object of the same place in the command's document (docs/json_schema.md); names that are not known
here are passed over, as that page asks of a reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Gpu:
    """The card."""

    name: str
    device_name: str
    memory: int
    compute_capability: str
    multiprocessors: int

    @classmethod
    def read(cls, json: Json) -> Gpu:
        return cls(
            name=json["name"],
            device_name=json["device_name"],
            memory=json["memory_bytes"],
            compute_capability=json["compute_capability"],
            multiprocessors=json["multiprocessors"],
        )


@dataclass(frozen=True)
class Peak:
    """The books at their highest, and where active was so.

    active: tensors, as the caching allocator rounds them. allocated: without what only waits for a stream.
    reserved: the allocator's segments. device: everything on the card, as nvidia-smi would show it, and device_parts
    what that consists of. step is None before the first one; module and stage are those of FSDP2.
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
    def read(cls, json: Json) -> Peak:
        return cls(
            active=json["active_bytes"],
            allocated=json["allocated_bytes"],
            reserved=json["reserved_bytes"],
            device=json["device_bytes"],
            segments=json["segments"],
            step=json["step"],
            phase=json["phase"],
            module=json.get("module"),
            stage=json.get("stage"),
            categories=dict(json.get("categories") or {}),
            device_parts=dict(json["device_parts"]),
        )

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
class Phase:
    """The peaks of one phase (forward, backward, optimizer, other), and what there was at its end."""

    active: int
    allocated: int
    reserved: int
    active_end: int
    reserved_end: int

    @classmethod
    def read(cls, json: Json) -> Phase:
        return cls(
            active=json["active_peak_bytes"],
            allocated=json["allocated_peak_bytes"],
            reserved=json["reserved_peak_bytes"],
            active_end=json["active_end_bytes"],
            reserved_end=json["reserved_end_bytes"],
        )


@dataclass(frozen=True)
class Step:
    """The peaks of one step, also by phase. step is None for what came before the first or after the last."""

    step: int | None
    active: int
    allocated: int
    reserved: int
    phases: dict[str, Phase]

    @classmethod
    def read(cls, json: Json) -> Step:
        return cls(
            step=json.get("step"),
            active=json["active_peak_bytes"],
            allocated=json["allocated_peak_bytes"],
            reserved=json["reserved_peak_bytes"],
            phases={name: Phase.read(phase) for name, phase in json["phases"].items()},
        )


@dataclass(frozen=True)
class Module:
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

    @classmethod
    def read(cls, json: Json) -> Module:
        return cls(
            name=json["name"],
            type=json["type"],
            fsdp_unit=json["fsdp_unit"],
            parameters=json["parameters"],
            highest=json["highest_bytes"],
            total=json["total_bytes"],
            at_peak=dict(json["at_peak"]),
        )


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
        return cls(
            bytes=json["bytes"],
            category=json["category"],
            why=json["why"],
            sentence=json["sentence"],
            owners={owner["name"]: owner["bytes"] for owner in json["owners"]},
        )


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
class OutOfMemory:
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
    def read(cls, json: Json) -> OutOfMemory:
        return cls(
            requested=json["requested_bytes"],
            device_free=json["device_free_bytes"],
            device_total=json["device_total_bytes"],
            active=json["active_bytes"],
            reserved=json["reserved_bytes"],
            step=json["step"],
            phase=json["phase"],
            module=json.get("module"),
            message=json["message"],
            file=json.get("file"),
            line=json.get("line"),
            function=json.get("function"),
            code=json.get("code"),
            device_parts=dict(json.get("device_parts") or {}),
            top=tuple(CodeLine.read(entry) for entry in json.get("top") or ()),
        )


@dataclass(frozen=True)
class ScriptError:
    """The exception that a script ended with."""

    type: str
    message: str
