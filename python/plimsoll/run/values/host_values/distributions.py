"""Arguments of torch's distributions on the device are valid, because the pretend GPU has no values to check.

`torch.distributions` checks arguments on the device and reads the result back with `torch._is_all_true`, which almost nothing
else uses. That operator gets a kernel for CUDA tensors, so that the compiler sees no change; tensors on the CPU, fake tensors and
meta tensors have other kernels. `Normal.sample` calls an operator that itself checks the deviations with a read-back.
"""

from types import ModuleType
from typing import Any

import torch

from plimsoll.wrapping import around

_kept: list[torch.library.Library] = []  # Held: a kernel is removed with its library.


def take_as_valid(distribution: ModuleType) -> None:
    if not _kept and hasattr(torch.ops.aten, "_is_all_true"):
        aten = torch.library.Library("aten", "IMPL")
        aten.impl("_is_all_true", _all_true, "CUDA")
        _kept.append(aten)


def _all_true(valid: torch.Tensor) -> torch.Tensor:
    valid.all().item()  # the same device work and read-back as torch's kernel
    return torch.ones((), dtype=torch.bool)


def sample_normally(normal: ModuleType) -> None:
    distribution = getattr(normal, "Normal", None)
    if not hasattr(distribution, "sample"):
        return

    @around(distribution, "sample")
    def sampled(sample: Any, self: Any, sample_shape: Any = torch.Size()) -> Any:
        if torch.compiler.is_compiling() or not _is_plain(self.loc) or not _is_plain(self.scale):
            return sample(self, sample_shape)
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return _normal(self.loc.expand(shape), self.scale.expand(shape))


def _is_plain(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.is_cuda


def _normal(mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Mirrors `normal_impl` and `normal_out_impl` of ATen/native/DistributionTemplates.h, which both check the deviations."""
    _look_at(std)
    drawn = torch.normal(mean, 1.0)
    _look_at(std)
    return drawn.mul_(std)


def _look_at(std: torch.Tensor) -> None:
    if std.numel() > 0:
        std.min().ge(0).item()
