"""Attention on the GPU, one algorithm after the other: the results of forward and backward, compared with the prediction of
torch's fake tensors for CUDA. The CPU has other algorithms, so it cannot be compared."""

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
    """The form of each result of the attention operators, including what forward saves for backward."""

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
    """The name of each algorithm that accepts the sample, and its difference from the prediction or None. Empty if torch
    refuses the sample."""
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
            # The fake tensor mode is the outer mode, so that its results are recorded.
            expected = predict(predicted)
        ours, theirs = (found, seen.found), (expected, predicted.found)
        yield name, None if ours == theirs else f"{name} attention: {ours} where fake tensors have {theirs}"
