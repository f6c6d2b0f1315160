"""The pretend GPU's control interface (control_c.h), through ctypes."""

import ctypes
import os
from collections.abc import Callable
from typing import Any, NamedTuple

LIBRARY = "libplimsoll_pretend.so"
_VERSION = 3
_REFUSAL_FIELDS = 6
_READ_BACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64)


class ControlMissing(RuntimeError):
    pass


def parts_of(*parts: int) -> dict[str, int]:
    """The parts of a device book by name, in the library's order."""
    return dict(zip(("segments", "context", "nccl", "handles"), parts))


class DeviceBook(NamedTuple):
    """The device book of one device, in bytes: the total that nvidia-smi would show, and its parts."""

    capacity: int
    used: int
    peak: int
    segments: int
    context: int
    nccl: int
    handles: int
    segments_peak: int
    context_peak: int
    nccl_peak: int
    handles_peak: int
    allocations: int
    frees: int
    refusals: int

    @property
    def parts(self) -> dict[str, int]:
        return parts_of(self.segments, self.context, self.nccl, self.handles)

    @property
    def peak_parts(self) -> dict[str, int]:
        return parts_of(self.segments_peak, self.context_peak, self.nccl_peak, self.handles_peak)


class Refusal(NamedTuple):
    """The last request that a device refused, and the parts of its device book at that moment."""

    asked: int
    parts: dict[str, int]


def _read(count: int, function: Any, device: int) -> list[int] | None:
    fields = (ctypes.c_uint64 * count)()
    return list(fields) if function(device, fields) >= 0 else None


class Control:
    def __init__(self, library: Any) -> None:
        self._library = library
        self._listener: Any | None = None
        found = library.plimsoll_control_version()
        if found != _VERSION:
            raise ControlMissing(f"{LIBRARY} has control version {found}, this observer needs {_VERSION}")

    def device_count(self) -> int:
        return int(self._library.plimsoll_device_count())

    def memory(self, device: int) -> DeviceBook | None:
        fields = _read(len(DeviceBook._fields), self._library.plimsoll_memory, device)
        return DeviceBook(*fields) if fields is not None else None

    def refusal(self, device: int) -> Refusal | None:
        fields = _read(_REFUSAL_FIELDS, self._library.plimsoll_refusal, device)
        return Refusal(fields[0], parts_of(*fields[2:])) if fields is not None else None

    def host_pinned_peak(self) -> int:
        fields = (ctypes.c_uint64 * 3)()
        self._library.plimsoll_host_memory(fields)
        return int(fields[1])

    def read_backs(self) -> int:
        fields = (ctypes.c_uint64 * 2)()
        self._library.plimsoll_work(fields)
        return int(fields[1])

    def on_read_back(self, listener: Callable[[int, int], None] | None) -> None:
        """Calls `listener(device, bytes)` on the thread that copies. None removes the listener."""
        callback = _READ_BACK(listener) if listener is not None else _READ_BACK()
        self._library.plimsoll_on_read_back(callback)
        # Old callbacks are kept: a copy on another thread may be running one.
        self._listener = (self._listener, callback)

    def answer_next_read_back(self, address: int, size: int) -> None:
        """The address of the data for this thread's next copy from the device, if it has this size. 0: zeros."""
        self._library.plimsoll_answer_next_read_back(address, size)

    def unpretended(self) -> list[str]:
        return [name for name in self._text(self._library.plimsoll_unpretended).splitlines() if name]

    def _text(self, function: Any) -> str:
        length = function(None, 0)
        buffer = ctypes.create_string_buffer(length + 1)
        function(buffer, length + 1)
        return buffer.value.decode(errors="replace")


def load() -> Control:
    """Opens the library that this process has loaded (it is preloaded with the faces that need it)."""
    folder = os.environ.get("PLIMSOLL_PRETEND_DIR")
    path = os.path.join(folder, LIBRARY) if folder else LIBRARY
    try:
        # With the same path or SONAME, the loader returns the loaded copy, which has the state.
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ControlMissing(f"the pretend GPU is not loaded: {error}") from None
    library.plimsoll_on_read_back.argtypes = [_READ_BACK]
    library.plimsoll_on_read_back.restype = None
    library.plimsoll_answer_next_read_back.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.plimsoll_answer_next_read_back.restype = None
    return Control(library)
