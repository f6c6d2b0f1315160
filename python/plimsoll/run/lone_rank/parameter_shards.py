"""A parameter's shards, made only for the ranks that are used.

torch makes a shard for each rank. ``fully_shard`` uses the first shard and that of this rank. DTensor's random numbers use the length
of one shard, if tensor parallelism and FSDP2 share a dimension. With 16,384 ranks and an 8B model, torch would make millions of tensors
in more than a minute. Here a shard is made on access. A shard is a view, empty, or a list of indices on the CPU, so device
allocations do not change.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from plimsoll.run.torch_patches import garbage_collection
from plimsoll.wrapping import around


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


def make_shards_on_access(module: ModuleType) -> None:
    if not hasattr(module, "_chunk_with_empty"):
        return

    @around(module, "_chunk_with_empty")
    def make_on_access(chunk_with_empty: Any, tensor: torch.Tensor, num_chunks: int, dim: int) -> Any:
        # A subclass may not split by `narrow`; and torch raises its own error for invalid arguments.
        is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        if is_plain and num_chunks > 0 and tensor.dim() > 0 and tensor.size(dim) > 0:
            garbage_collection.make_up_for(num_chunks)
            return Shards(tensor, num_chunks, dim)
        return chunk_with_empty(tensor, num_chunks, dim=dim)


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


def count_one_rank(placements: ModuleType) -> None:
    modes = getattr(placements, "_StridedShardOffsetMode", None)  # of torch 2.13
    if modes is None:
        return

    @around(placements._StridedShard, "local_shard_size_and_offset")
    def size_and_offset(
        original: Any, self: Any, curr_local_size: Any, num_chunks: Any, rank: Any, offset_mode: Any = modes.FIRST
    ) -> Any:
        numbers = (curr_local_size, self.split_factor, num_chunks, rank)
        are_plain = _makes_plain_indices() and all(type(number) is int for number in numbers)
        if not (are_plain and curr_local_size >= 0 and self.split_factor > 0 and 0 <= rank < num_chunks):
            return original(self, curr_local_size, num_chunks, rank, offset_mode)
        ranges = strided_shard_ranges(*numbers)
        size = sum(map(len, ranges))
        mode = modes(offset_mode)
        if mode is modes.NONE:
            return size, None
        if mode is modes.ALL:
            return size, [index for one in ranges for index in one]
        return size, next((one.start for one in ranges if one), -1)
