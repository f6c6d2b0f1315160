"""torch's operators on this thread's native stack, found by the symbol names that libtorch exports."""

import ctypes
import re
from collections.abc import Callable
from ctypes import c_char_p, c_void_p

_DEPTH = 96
_OPERATOR = re.compile(rb"^_ZN2at4_ops(\d+)")


class _DlInfo(ctypes.Structure):
    _fields_ = [("file", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p)]


class NativeStack:
    """Works on Linux with glibc; elsewhere `operators` is empty."""

    def __init__(self) -> None:
        self._backtrace: Callable[..., int] | None = None
        try:
            process = ctypes.CDLL(None)
            self._dladdr = process.dladdr
            self._backtrace = process.backtrace
        except (OSError, AttributeError):
            return
        self._dladdr.argtypes = [c_void_p, ctypes.POINTER(_DlInfo)]

    def operators(self) -> list[str]:
        """Names without namespace and overload, innermost first, each once."""
        if self._backtrace is None:
            return []
        addresses = (c_void_p * _DEPTH)()
        found: list[str] = []
        info = _DlInfo()
        for address in addresses[: self._backtrace(addresses, _DEPTH)]:
            if address and self._dladdr(address, ctypes.byref(info)) and info.symbol:
                name = operator_name(info.symbol)
                if name and name not in found:
                    found.append(name)
        return found


def operator_name(symbol: bytes) -> str:
    """`nonzero` for the mangled at::_ops::nonzero::call; empty for any other symbol."""
    match = _OPERATOR.match(symbol)
    if match is None:
        return ""
    start = match.end()
    return symbol[start : start + int(match.group(1))].decode()
