"""Host values: answers for read-backs of libraries whose values the host knows.

A read-back gives zero (docs/pretend_gpu.md). If a library sends a host's value to the device and reads it back to make a
decision, zero is wrong: a generation never ends, a random generator gets an invalid state, valid arguments are rejected.
In these cases the host answers:

    transformers      a generation ends at its length
    attention_masks   a batch that the host sent without padding needs no mask
    image_sizes       images have the sizes that the host sent
    accelerate        random generators' states and sizes on which ranks agree are this rank's
    distributions     torch's own: arguments on the device are valid
    known_values      torch's own: a mask from host values selects the right number of elements

The library's device work stays the same, allocation for allocation. Functions that a library's version lacks are skipped.
"""

import functools
from collections.abc import Callable
from types import ModuleType

from plimsoll.run.observe.defects import Defects
from plimsoll.run.pretend_control import Control
from plimsoll.run.torch_patches.after_import import after_import

__all__ = ["install"]


def install(control: Control | None, defects: Defects) -> None:
    """Call after `import torch`. Each library is patched when the script imports it."""
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
