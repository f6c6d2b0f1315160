"""`pretend`: measures a block of code in a process that runs on the pretend GPU."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
from dataclasses import dataclass
from typing import Any

from plimsoll import autograd_threads
from plimsoll.amounts import text_of
from plimsoll.run.pretend_control import LIBRARY
from plimsoll.run.settings import number_in_environment


class NotPretending(RuntimeError):
    """This process was not started on the pretend GPU."""

    def __init__(self) -> None:
        super().__init__(
            "this process is not on the pretend GPU, which must be present when Python starts: start the script with "
            "`plimsoll run script.py` or `python -m plimsoll run script.py`, or call plimsoll.estimate(function), which "
            "starts a process of its own"
        )


@dataclass(frozen=True)
class PretendGpu:
    """The card of this process."""

    name: str
    memory: int


class Card:
    """The memory of a block on the pretend GPU. `used` is valid while the block runs; the other values are set at its end.

    gpu, world_size, rank   of the process
    peak_active             peak of the active book: live tensors, as the caching allocator rounds them
    peak_reserved           peak of the reserved book: the caching allocator's segments
    device_bytes            peak_reserved, plus context, handles and NCCL at the end of the block
    fits                    True; False if the block ended by running out of memory
    """

    def __init__(self, gpu: PretendGpu, world_size: int, rank: int, device: int | None) -> None:
        self.gpu = gpu
        self.world_size = world_size
        self.rank = rank
        self.peak_active = 0
        self.peak_reserved = 0
        self.device_bytes = 0
        self.fits: bool | None = None
        self._device = device
        self._peaks: dict[int, tuple[int, int]] = {}  # before an inner block began

    @property
    def used(self) -> int:
        """The bytes in use on the card now, as nvidia-smi would show them."""
        torch = _torch()
        if not torch.cuda.is_initialized():
            return 0
        free, total = torch.cuda.mem_get_info(self._device)
        return int(total - free)

    @property
    def spare(self) -> int:
        """The bytes of the card that the block did not need."""
        return self.gpu.memory - self.device_bytes

    def __repr__(self) -> str:
        if self.fits is None:
            return f"<Card {self.gpu.name}: in use>"
        words = "fits" if self.fits else "does not fit"
        return f"<Card {self.gpu.name}: {words}, {text_of(self.device_bytes)} of {text_of(self.gpu.memory)}>"

    def _see(self) -> None:
        """Keeps the peaks so far, before a reset."""
        for device, (active, reserved) in _peaks().items():
            before = self._peaks.get(device, (0, 0))
            self._peaks[device] = (max(before[0], active), max(before[1], reserved))

    def _end(self, error: BaseException | None) -> None:
        torch = _torch()
        self.fits = not _is_out_of_memory(error)
        self._see()
        if not self._peaks:
            return
        device = self._device
        if device is None:
            device = max(self._peaks, key=lambda index: self._peaks[index][::-1])
        self.peak_active, self.peak_reserved = self._peaks.get(device, (0, 0))
        free, total = torch.cuda.mem_get_info(device)
        beside = int(total - free) - int(torch.cuda.memory_reserved(device))
        self.device_bytes = self.peak_reserved + beside


_open: list[Card] = []  # open blocks of this process, the outermost first


class pretend:  # noqa: N801, it is used as a function
    """Measures a block of code on the pretend GPU of this process.

    >>> import torch
    >>> with pretend(world_size=1) as card:
    ...     numbers = torch.zeros(1 << 20, device="cuda")
    ...     doubled = numbers * 2
    >>> card.peak_active, card.fits
    (8388608, True)

    world_size, rank, gpu: the values that the block requires, if any: ValueError if the process has other values.
    device: the index of the card to measure (None: the card with the highest peak).

    The block resets torch.cuda's peaks, like torch.cuda.reset_peak_memory_stats(). A call of that function inside the block hides
    the peaks before the call. Blocks can be nested. The report of `plimsoll run` does not change. An out-of-memory error passes
    through, and `card.fits` is False then.

    Raises NotPretending, on entry, in a process without the pretend GPU.
    """

    def __init__(
        self,
        *,
        world_size: int | None = None,
        rank: int | None = None,
        gpu: str | None = None,
        device: int | None = None,
    ) -> None:
        self._wanted = {"world_size": world_size, "rank": rank, "gpu": gpu}
        self._device = device
        self._card: Card | None = None

    def __enter__(self) -> Card:
        profile = _profile()
        if profile is None:
            raise NotPretending()
        autograd_threads.wait_at_exit()
        gpu = PretendGpu(str(_plain(profile["name"])), int(_plain(profile["memory_bytes"])))
        world_size, rank = number_in_environment("WORLD_SIZE", 1), number_in_environment("RANK", 0)
        self._check({"world_size": world_size, "rank": rank, "gpu": gpu.name})
        for outer in _open:
            outer._see()
        _reset()
        self._card = Card(gpu, world_size, rank, self._device)
        _open.append(self._card)
        return self._card

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        assert self._card is not None
        _open.remove(self._card)
        self._card._end(error)

    def _check(self, started: dict[str, Any]) -> None:
        for name, wanted in self._wanted.items():
            if wanted is not None and wanted != started[name]:
                option = "--" + name.replace("_", "-")
                raise ValueError(
                    f"{name} is {started[name]!r} in this process, but the block requires {wanted!r}: start it with "
                    f"`plimsoll run {option} {wanted} script.py`"
                )


def _profile() -> Any:
    """The profile of this process's pretend GPU, or None."""
    folder = os.environ.get("PLIMSOLL_PRETEND_DIR")
    if not folder:
        return None
    try:
        # Only if it is loaded already: a library that is loaded now has no effect.
        library = ctypes.CDLL(os.path.join(folder, LIBRARY), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    length = library.plimsoll_profile(None, 0)
    text = ctypes.create_string_buffer(length + 1)
    library.plimsoll_profile(text, length + 1)
    return json.loads(text.value.decode())


def _torch() -> Any:
    """Imported on use: planning works without torch."""
    return importlib.import_module("torch")


def _plain(value: Any) -> Any:
    """The value, without its source: a profile may have both."""
    return value["value"] if isinstance(value, dict) else value


def _peaks() -> dict[int, tuple[int, int]]:
    """Active and reserved peaks of each used device since the last reset."""
    torch = _torch()
    if not torch.cuda.is_initialized():
        return {}
    found = {}
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        reserved = stats.get("reserved_bytes.all.peak", 0)
        if reserved:
            found[device] = (int(stats["active_bytes.all.peak"]), int(reserved))
    return found


def _reset() -> None:
    for device in _peaks():
        _torch().cuda.reset_peak_memory_stats(device)


def _is_out_of_memory(error: BaseException | None) -> bool:
    if isinstance(error, _torch().cuda.OutOfMemoryError):
        return True
    # Libraries and the driver have their own messages.
    return isinstance(error, RuntimeError) and "out of memory" in str(error)
