"""What a library asks the device although the host knows it.

A value that is read back from the device is zero (docs/pretend_gpu.md). Where a library sends something there that the host holds
anyway, and reads it back to decide what comes next, zero is the wrong answer: a generation that never ends, a generator's state that
is none, valid arguments that are refused. There the host answers:

=================  =====================================================================================================
transformers       ``transformers.py``: a generation ends at its length
                   ``attention_masks.py``: a batch that the host sent without padding needs no mask
                   ``image_sizes.py``: images are as large as the host said
accelerate         ``accelerate.py``: generators' states, and sizes, that ranks are to agree on are this rank's
torch's own        ``distributions.py``: arguments on the device are taken to be valid
                   ``known_values.py``: a mask that comes from what the host sent selects as much as it would
=================  =====================================================================================================

The library's work on the device stays as it is, allocation for allocation; only the answer is another. What a version of a library
does not have is left alone.
"""

import functools
from collections.abc import Callable
from types import ModuleType

from plimsoll.run.observe.defects import Defects
from plimsoll.run.pretend_control import Control
from plimsoll.run.torch_patches.after_import import after_import

__all__ = ["install"]


def install(control: Control | None, defects: Defects) -> None:
    """Call after `import torch`; each library is changed when the script imports it."""
    from plimsoll.run.values.host_values import (
        accelerate,
        attention_masks,
        distributions,
        image_sizes,
        known_values,
        transformers,
    )

    defects.attempt(known_values.begin, control)

    answers: dict[str, Callable[[ModuleType], None]] = {
        "transformers.generation.stopping_criteria": transformers.note_the_length,
        "transformers.generation.utils": functools.partial(transformers.end_at_the_length, defects),
        "transformers.modeling_utils": image_sizes.answer,
        "transformers.masking_utils": attention_masks.answer,
        "transformers.modeling_attn_mask_utils": attention_masks.answer,
        "transformers.modeling_flash_attention_utils": attention_masks.answer,
        "torch.utils.checkpoint": known_values.ask_again_in_backward,
        "accelerate.utils.random": accelerate.keep_generators,
        "accelerate.utils.operations": accelerate.keep_sizes,
        "torch.distributions.distribution": distributions.take_as_valid,
        "torch.distributions.normal": distributions.sample_normally,
    }
    for module, answer in answers.items():
        after_import.call(module, functools.partial(defects.attempt, answer))
