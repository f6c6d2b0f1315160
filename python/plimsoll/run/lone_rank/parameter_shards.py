"""A parameter's shards, made only for the ranks that are used.

torch makes a shard for each rank and uses one or two of them. ``fully_shard`` uses the first shard and that of this rank. DTensor's
random numbers use the length of one shard, if tensor parallelism and FSDP2 share a dimension. With 16,384 ranks and the 300
parameters of an 8B model, torch makes millions of tensors, most of them empty, in more than a minute. Here a shard is made on access.
A shard is a view, empty, or a list of indices on the CPU, so device allocations do not change.
"""

import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from plimsoll.run.torch_patches import garbage_collection
from plimsoll.run.torch_patches.after_import import after_import

_FSDP_PARAM = (
    "torch.distributed.fsdp._fully_shard._fsdp_param",
    "torch.distributed._composable.fsdp._fsdp_param",  # torch 2.5
)
_FUNCTION = "_chunk_with_empty"
_PLACEMENTS = "torch.distributed.tensor.placement_types"


class Shards:
    """The result of ``torch.chunk``, with empty tensors up to `number`: by index, by length, in order."""

    def __init__(self, tensor: torch.Tensor, number: int, dim: int) -> None:
        self._tensor = tensor
        self._number = number
        self._dim = dim
        self._length = -(-tensor.size(dim) // number)  # rounded up

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, index: int) -> torch.Tensor:
        which = range(self._number)[index]
        start, end = which * self._length, self._tensor.size(self._dim)
        if start >= end:
            return self._tensor.new_empty(0)
        return self._tensor.narrow(self._dim, start, min(self._length, end - start))

    def __iter__(self) -> Iterator[torch.Tensor]:
        return map(self.__getitem__, range(self._number))


def install() -> None:
    for name in _FSDP_PARAM:
        after_import.call(name, _make_shards_on_access)
    after_import.call(_PLACEMENTS, _count_one_rank)


def _make_shards_on_access(module: ModuleType) -> None:
    chunk_with_empty = getattr(module, _FUNCTION, None)
    if chunk_with_empty is None:
        return

    @functools.wraps(chunk_with_empty)
    def make_on_access(tensor: torch.Tensor, num_chunks: int, dim: int) -> Any:
        # A subclass may not split by `narrow`; and torch raises its own error for invalid arguments.
        is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        if is_plain and num_chunks > 0 and tensor.dim() > 0 and tensor.size(dim) > 0:
            garbage_collection.make_up_for(num_chunks)
            return Shards(tensor, num_chunks, dim)
        return chunk_with_empty(tensor, num_chunks, dim=dim)

    setattr(module, _FUNCTION, make_on_access)


def strided_shard_ranges(size: int, split_factor: int, number: int, which: int) -> list[range]:
    """The indices of shard `which`: a dimension of `size` is split into `split_factor` parts, and each part into `number` shards."""
    ranges = []
    part = -(-size // split_factor)
    for start in range(0, size, max(part, 1)):
        end = min(start + part, size)
        length = -(-(end - start) // number)
        ranges.append(range(start, end)[which * length : (which + 1) * length])
    return ranges


def _makes_plain_indices() -> bool:
    """True if torch's indices would be plain CPU tensors. A mode can put them on another device or make them fake."""
    has_mode = torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack()
    return not has_mode and torch._C._get_default_device() == "cpu"


def _count_one_rank(placements: ModuleType) -> None:
    modes = getattr(placements, "_StridedShardOffsetMode", None)  # of torch 2.13
    if modes is None:
        return
    strided_shard = placements._StridedShard
    size_and_offset = strided_shard.local_shard_size_and_offset

    @functools.wraps(size_and_offset)
    def count_one_rank(
        self: Any, curr_local_size: Any, num_chunks: Any, rank: Any, offset_mode: Any = modes.FIRST
    ) -> Any:
        numbers = (curr_local_size, self.split_factor, num_chunks, rank)
        are_plain = _makes_plain_indices() and all(type(number) is int for number in numbers)
        if not (are_plain and curr_local_size >= 0 and self.split_factor > 0 and 0 <= rank < num_chunks):
            return size_and_offset(self, curr_local_size, num_chunks, rank, offset_mode)
        ranges = strided_shard_ranges(*numbers)
        size = sum(map(len, ranges))
        mode = modes(offset_mode)
        if mode is modes.NONE:
            return size, None
        if mode is modes.ALL:
            return size, [index for one in ranges for index in one]
        return size, next((one.start for one in ranges if one), -1)

    strided_shard.local_shard_size_and_offset = count_one_rank
