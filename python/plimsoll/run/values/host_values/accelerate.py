"""Values on which accelerate's ranks agree through the device. Peers hold this rank's values, so the answer is this rank's."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from plimsoll.wrapping import around


class _Kept:
    """A random generator that gives its state and ignores the state that comes back from the device."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def get_state(self) -> torch.Tensor:
        return self._generator.get_state()

    def set_state(self, state: torch.Tensor) -> None:
        pass


def _of_this_device() -> torch.Generator:
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]


def keep_generators(random: ModuleType) -> None:
    """accelerate sends a generator's state to the device, broadcasts it and sets the result."""
    kinds = getattr(random, "RNGType", None)
    if not hasattr(random, "synchronize_rng_state") or kinds is None or not hasattr(kinds, "GENERATOR"):
        return
    of_kind: dict[Any, Callable[[], torch.Generator]] = {
        getattr(kinds, "TORCH", None): lambda: torch.default_generator,
        getattr(kinds, "CUDA", None): _of_this_device,
    }

    @around(random, "synchronize_rng_state")
    def kept(synchronize: Any, rng_type: Any = None, generator: Any = None) -> Any:
        if rng_type in of_kind and rng_type is not None:
            rng_type, generator = kinds.GENERATOR, of_kind[rng_type]()
        if rng_type == kinds.GENERATOR and generator is not None:
            generator = _Kept(generator)
        return synchronize(rng_type, generator)


def keep_sizes(operations: ModuleType) -> None:
    """accelerate pads tensors to the largest size of any rank, a read-back. Here all ranks have this rank's size."""
    gather, apply = getattr(operations, "gather", None), getattr(operations, "recursively_apply", None)
    if not hasattr(operations, "pad_across_processes") or gather is None or apply is None:
        return

    @around(operations, "pad_across_processes")
    def kept(pad: Any, tensor: Any, dim: int = 0, *args: Any, **options: Any) -> Any:
        def agreed(one: torch.Tensor) -> Any:
            if not one.is_cuda or one.is_nested or not -one.dim() <= dim < one.dim():
                return pad(one, dim, *args, **options)
            gather(torch.tensor(one.shape, device=one.device)[None]).cpu()
            return one

        return apply(agreed, tensor, error_on_other_type=True)
