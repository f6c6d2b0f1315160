"""The allocator's blocks, replayed from its trace.

The trace has requested sizes; the active book counts whole blocks. The size of a block follows from the layout, because the
allocator always merges free neighbours: a request takes the front of a gap, rounded up. If the allocator's rule allows it, the
rest of the gap is split off; if not, the block takes the whole gap.

    segment │ block │ block │......gap......│ block │        request ──► │ taken │..rest..│   or   │     taken      │
"""

import bisect
from typing import Any, NamedTuple

_MIN_BLOCK = 512
_SMALL = 1 << 20  # requests up to this come from the small pool

Entry = dict[str, Any]


class Rules:
    """Rounding and splitting of blocks, from the allocator's settings."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._expandable = bool(settings.get("expandable_segments", False))
        limit = settings.get("max_split_size", -1)
        self._max_split = limit if limit is not None and limit >= 0 else None
        divisions = settings.get("roundup_power2_divisions") or {}
        self._divisions = [int(divisions.get(str(1 << power), 0)) for power in range(16)]

    def rounded(self, requested: int) -> int:
        if requested < _MIN_BLOCK:
            return _MIN_BLOCK
        interval = min(max(requested.bit_length() - 1 - 20, 0), 15)
        divisions = self._divisions[interval]
        if divisions > 1 and requested > _MIN_BLOCK * divisions:
            floor = 1 << (requested.bit_length() - 1)
            part = floor // divisions
            return requested if requested == floor else -(-requested // part) * part
        return -(-requested // _MIN_BLOCK) * _MIN_BLOCK

    def taken(self, requested: int, gap: int) -> int:
        size = self.rounded(requested)
        rest = gap - size
        if size <= _SMALL or self._expandable:
            return size if rest >= _MIN_BLOCK else gap
        splits = (self._max_split is None or size < self._max_split) and rest > _SMALL
        return size if splits else gap


class Block(NamedTuple):
    size: int
    frames: list[dict[str, Any]]
    time_us: int | None  # of its allocation; None if the trace begins later


class Layout:
    """Active blocks and segments of one device. Entries of its trace update them."""

    def __init__(self, snapshot: dict[str, Any], device: int) -> None:
        self.rules = Rules(snapshot.get("allocator_settings", {}))
        self.blocks: dict[int, Block] = {}
        self.active_bytes = 0
        self._starts: list[int] = []
        self._segment_starts: list[int] = []
        self._segment_ends: dict[int, int] = {}
        for segment in snapshot["segments"]:
            if segment["device"] != device:
                continue
            self._add_segment(segment["address"], segment["total_size"], segment.get("is_expandable", False))
            for block in segment["blocks"]:
                if block["state"] != "inactive":
                    self._add_block(block["address"], Block(block["size"], block.get("frames", []), None))

    def apply(self, entry: Entry) -> None:
        action = entry["action"]
        if action == "alloc":
            address = entry["addr"]
            gap = self._gap_at(address)
            size = self.rules.rounded(entry["size"]) if gap is None else self.rules.taken(entry["size"], gap)
            self._add_block(address, Block(size, entry.get("frames", []), entry.get("time_us")))
        elif action == "free_completed":
            self._remove_block(entry["addr"])
        elif action == "segment_alloc":
            self._add_segment(entry["addr"], entry["size"], False)
        elif action == "segment_map":
            self._add_segment(entry["addr"], entry["size"], True)
        elif action in ("segment_free", "segment_unmap"):
            self._remove_segment(entry["addr"], entry["size"])

    def _add_block(self, address: int, block: Block) -> None:
        bisect.insort(self._starts, address)
        self.blocks[address] = block
        self.active_bytes += block.size

    def _remove_block(self, address: int) -> None:
        block = self.blocks.pop(address, None)
        if block is not None:
            del self._starts[bisect.bisect_left(self._starts, address)]
            self.active_bytes -= block.size

    def _gap_at(self, address: int) -> int | None:
        """None in an unknown segment."""
        index = bisect.bisect_right(self._segment_starts, address) - 1
        end = self._segment_ends[self._segment_starts[index]] if index >= 0 else address
        if end <= address:
            return None
        after = bisect.bisect_right(self._starts, address)
        if after < len(self._starts):
            end = min(end, self._starts[after])
        return end - address

    def _add_segment(self, address: int, size: int, expandable: bool) -> None:
        end = address + size
        if expandable:  # adjacent mappings belong to one segment
            before = bisect.bisect_left(self._segment_starts, address) - 1
            if before >= 0 and self._segment_ends[self._segment_starts[before]] == address:
                address = self._segment_starts.pop(before)
            following = self._segment_ends.pop(end, None)
            if following is not None:
                del self._segment_starts[bisect.bisect_left(self._segment_starts, end)]
                end = following
        bisect.insort(self._segment_starts, address)
        self._segment_ends[address] = end

    def _remove_segment(self, address: int, size: int) -> None:
        index = bisect.bisect_right(self._segment_starts, address) - 1
        if index < 0:
            return
        start = self._segment_starts[index]
        end = self._segment_ends[start]
        del self._segment_starts[index], self._segment_ends[start]
        if start < address:
            self._add_segment(start, address - start, False)
        if address + size < end:
            self._add_segment(address + size, end - address - size, False)


class Moment(NamedTuple):
    active_bytes: int
    entries: int  # number of trace entries up to this moment


def highest_moment(layout: Layout, trace: list[Entry]) -> Moment:
    """Replays the whole trace. Returns the first moment with the most active bytes."""
    best = Moment(layout.active_bytes, 0)
    for index, entry in enumerate(trace):
        layout.apply(entry)
        if layout.active_bytes > best.active_bytes:
            best = Moment(layout.active_bytes, index + 1)
    return best
