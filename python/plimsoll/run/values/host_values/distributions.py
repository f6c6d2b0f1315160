"""Arguments of torch's distributions that lie on the device are valid: there are no values that could not be.

`torch.distributions` computes on the device whether they are, and asks `torch._is_all_true`, which hardly anything else does. For
tensors on a CUDA device that operator is given a kernel, below everything that looks at Python code: the compiler sees the operator
as ever, and tensors on the CPU, fake ones and those without data have kernels of their own. `Normal.sample` calls an operator that
itself reads back whether the deviations are valid.
"""

import functools
from types import ModuleType
from typing import Any

import torch

_kept: list[torch.library.Library] = []  # A kernel goes with the library that it was given by.


def take_as_valid(distribution: ModuleType) -> None:
    if not _kept and hasattr(torch.ops.aten, "_is_all_true"):
        aten = torch.library.Library("aten", "IMPL")
        aten.impl("_is_all_true", _all_true, "CUDA")
        _kept.append(aten)


def _all_true(valid: torch.Tensor) -> torch.Tensor:
    valid.all().item()  # the device's work and the read-back, as torch's own
    return torch.ones((), dtype=torch.bool)


def sample_normally(normal: ModuleType) -> None:
    distribution = getattr(normal, "Normal", None)
    sample = getattr(distribution, "sample", None)
    if distribution is None or sample is None:
        return

    @functools.wraps(sample)
    def sampled(self: Any, sample_shape: Any = torch.Size()) -> Any:
        if torch.compiler.is_compiling() or not _is_plain(self.loc) or not _is_plain(self.scale):
            return sample(self, sample_shape)
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return _normal(self.loc.expand(shape), self.scale.expand(shape))

    distribution.sample = sampled


def _is_plain(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.is_cuda


def _normal(mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Mirrors `normal_impl` and `normal_out_impl` of ATen/native/DistributionTemplates.h: both check the deviations."""
    _look_at(std)
    drawn = torch.normal(mean, 1.0)
    _look_at(std)
    return drawn.mul_(std)


def _look_at(std: torch.Tensor) -> None:
    if std.numel() > 0:
        std.min().ge(0).item()
