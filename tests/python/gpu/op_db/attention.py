"""Attention on the GPU, algorithm by algorithm: what each gives, in front and behind, beside what torch's fake tensors
predict for CUDA. The CPU has other algorithms, so there is nothing else to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ALGORITHMS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
}


class Noted(TorchDispatchMode):
    """The form of all that the operators of attention give: also what forward leaves for backward."""

    def __init__(self, form: Callable[[Any], Any]) -> None:
        super().__init__()
        self.form = form
        self.found: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if "_attention" in func.name():
            self.found.append([func.name(), *map(self.form, tree_leaves(result))])
        return result


def compared(
    run: Callable[..., Any], predict: Callable[..., Any], form: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    """For each algorithm that takes the sample, its name and how it differs from the prediction, or None; where torch refuses
    the sample, nothing."""
    for name, backend in ALGORITHMS.items():
        seen, predicted = Noted(form), Noted(form)
        with sdpa_kernel(backend):
            try:
                with seen:
                    found = run()
            except RuntimeError as error:
                if "No available kernel" in str(error):
                    continue
                raise
            # The mode of fake tensors stands outside, so that what it gives is noted.
            expected = predict(predicted)
        ours, theirs = (found, seen.found), (expected, predicted.found)
        yield name, None if ours == theirs else f"{name} attention: {ours} where fake tensors have {theirs}"
