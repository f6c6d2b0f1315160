"""Attention masks: before each forward, transformers asks the device whether a mask of tokens by tokens is needed.

A batch without padding needs no mask, and flash attention without one keeps less memory. So the library's functions run with host
values known. Positions that the host did not send are the model's own and consecutive: from other positions the library would
conclude that several sequences are packed into one.
"""

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from plimsoll.run.values.host_values import known_values
from plimsoll.wrapping import replace

_ASKING = (
    "create_causal_mask",
    "create_bidirectional_mask",
    "create_sliding_window_causal_mask",
    "create_bidirectional_sliding_window_mask",
    "create_chunked_causal_mask",
    "create_recurrent_attention_mask",
    "_prepare_4d_attention_mask_for_sdpa",
    "_prepare_4d_causal_attention_mask_for_sdpa",
    "_is_packed_sequence",
)


def answer(module: ModuleType) -> None:
    """`module`: a module of transformers, of any version, that makes masks."""
    for name in _ASKING:
        if callable(getattr(module, name, None)):
            replace(module, name, _asked)
    converter = getattr(module, "AttentionMaskConverter", None)
    if converter is not None and isinstance(vars(converter).get("_ignore_causal_mask_sdpa"), staticmethod):
        replace(converter, "_ignore_causal_mask_sdpa", known_values.where_known)


def _asked(function: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(function)
    asked = known_values.where_known(function)
    if "position_ids" not in parameters.parameters:
        return asked

    @functools.wraps(function)
    def with_positions(*args: Any, **options: Any) -> Any:
        if not torch.compiler.is_compiling():
            _take_as_consecutive(parameters.bind_partial(*args, **options).arguments.get("position_ids"))
        return asked(*args, **options)

    return with_positions


def _take_as_consecutive(positions: torch.Tensor | None) -> None:
    if isinstance(positions, torch.Tensor) and positions.dim() > 0 and known_values.on_host(positions) is None:
        known_values.note(positions, torch.arange(positions.shape[-1]).expand(positions.shape))
