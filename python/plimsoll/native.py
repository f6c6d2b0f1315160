"""The extension module, in the variant that this torch can load."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from plimsoll import autograd_threads

TORCH = "2.13"  # The extension is compiled against this version: torch's C++ interface changes between versions.


class NoNativePart(ImportError):
    """The extension module cannot be loaded. The message has the reason and a remedy."""


def load() -> ModuleType:
    """`plimsoll._C`, or `plimsoll._C_cpu` for a CPU build of torch."""
    version = torch.__version__
    if not version.startswith(f"{TORCH}."):
        raise NoNativePart(
            f"plimsoll's trackers are compiled for torch {TORCH}, but this is torch {version}: "
            f"install torch=={TORCH}.0, or run the script with `plimsoll run --python`, which takes torch 2.5 to {TORCH}"
        )
    name = "plimsoll._C" if torch.version.cuda is not None else "plimsoll._C_cpu"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise NoNativePart(
            f"{name} does not exist: plimsoll's native part is not built. Install the package (`pip install .`), or run "
            "`./plimsoll` once in the source tree"
        ) from None
    except ImportError as error:
        raise NoNativePart(
            f"{name} cannot be loaded with torch {version} ({error}): it was built for another build of torch. "
            "Build the package again in this environment: `pip install --no-build-isolation --force-reinstall .`"
        ) from error
    if not hasattr(module, "MemoryUse"):
        raise NoNativePart(
            f"{module.__file__} was built from other sources than this package. Install the package again (`pip install .`), or run "
            "`./plimsoll` once in the source tree"
        )
    autograd_threads.wait_at_exit()
    return module


if TYPE_CHECKING:
    from plimsoll import _C as _C
    from plimsoll._C import MemoryUse as MemoryUse
    from plimsoll._C import Stage as Stage
else:
    _C = load()
    MemoryUse, Stage = _C.MemoryUse, _C.Stage
