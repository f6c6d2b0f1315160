"""torch loads the libraries of NVIDIA's packages by path. This makes ctypes load the pretend libraries instead."""

import ctypes
import os
from typing import Any

from plimsoll.wrapping import around


def install(folder: str) -> None:
    """From now on ctypes loads each library that `folder` (the pretend libraries) has by its name, for any path."""
    ours = {name for name in os.listdir(folder) if ".so" in name}

    @around(ctypes.CDLL, "__init__")
    def init(original: Any, self: Any, name: Any, *args: Any, **options: Any) -> None:
        base = os.path.basename(name) if isinstance(name, str) else None
        original(self, os.path.join(folder, base) if base in ours else name, *args, **options)
