"""Snapshots as torch's trackers give them: {torch.device: {category: bytes, "Total": bytes}}."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch.distributed._tools.mem_tracker import _RefType, _State

from plimsoll.trackers.ref_types import OwnRefType

TOTAL = "Total"
Category: TypeAlias = _RefType | str
Snapshot = dict[torch.device, dict[Category, int]]

_OWN = {member.value: member for member in OwnRefType.__members__.values()}


def snapshot_from(plain: Mapping[str, Mapping[str, int]], ref_class: type[_RefType]) -> Snapshot:
    """All members of `ref_class`, also without bytes; then the other categories that have bytes, as a member of OwnRefType or
    the user's name; then the total. Leaves out devices that hold nothing."""
    return {
        torch.device(name): _of_device(categories, ref_class) for name, categories in plain.items() if categories[TOTAL]
    }


def _of_device(categories: Mapping[str, int], ref_class: type[_RefType]) -> dict[Category, int]:
    result: dict[Category, int] = {member: categories.get(member.value, 0) for member in ref_class}
    known = {member.value for member in ref_class}
    for name, count in categories.items():
        if name not in known and name != TOTAL and count:
            result[_OWN.get(name, name)] = count
    result[TOTAL] = categories[TOTAL]
    return result


def states_from(
    plain: Mapping[str, Any], state_class: type[_State], ref_class: type[_RefType]
) -> dict[_State, list[Snapshot]]:
    """The snapshots of a module by state, in the order of the native part, which is torch's: in the order of events, and a peak
    before the state that begins its pass."""
    snapshots: Mapping[str, list[Any]] = plain["snapshots"]
    return {state_class(state): [snapshot_from(one, ref_class) for one in calls] for state, calls in snapshots.items()}
