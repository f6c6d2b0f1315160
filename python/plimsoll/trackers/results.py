"""Answers of trackers besides snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class LiveTensor:
    """An allocation that was live at a peak."""

    bytes: int
    category: str
    owner: str  # the path of its module, or the class of its optimizer; "" for none
    sizes: tuple[int, ...] | None  # of its tensor; None for temporaries and workspaces
    dtype: torch.dtype | None


@dataclass(frozen=True)
class Cause:
    """Live bytes of one category with one reason."""

    bytes: int
    category: str
    why: str
    sentence: str
    owners: list[tuple[str, int]]  # largest first
    allocations: int = 0
    one_per_shard: bool = False  # temporaries of an optimizer's step: one for each shard


@dataclass(frozen=True)
class Explanation:
    """The bytes of a device at one instant. Its causes, largest first, sum to the total."""

    device: str
    total: int
    causes: list[Cause]
    text: str
    reserved: int | None = None
    step: int | None = None
    phase: str = ""
    module: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Explanation":
        causes = [
            Cause(**{**cause, "owners": [tuple(owner) for owner in cause["owners"]]}) for cause in plain["causes"]
        ]
        return cls(**{**plain, "causes": causes})
