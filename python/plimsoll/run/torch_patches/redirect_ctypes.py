"""Torch loads NVIDIA's packages by path where they are installed: it is given the pretend libraries instead."""

import ctypes
import os
from typing import Any


def install(folder: str) -> None:
    """`folder`: of the pretend libraries. From now on ctypes loads a library of theirs by name, whatever its path."""
    ours = {name for name in os.listdir(folder) if ".so" in name}
    original = ctypes.CDLL.__init__

    def init(self: Any, name: Any, *args: Any, **options: Any) -> None:
        base = os.path.basename(name) if isinstance(name, str) else None
        original(self, os.path.join(folder, base) if base in ours else name, *args, **options)

    ctypes.CDLL.__init__ = init  # type: ignore[method-assign]
