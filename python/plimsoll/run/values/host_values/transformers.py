"""`generate()` of transformers ends at its maximum length, as for a model that never generates an end-of-sequence token.

After each token the library evaluates its stopping criteria on the device and reads back whether any sequence continues. The host
can evaluate one of them: `MaxLengthCriteria` compares the length, which is a shape, with the maximum. Its result is kept for the
thread, and answers each loop (sampling, beam search, the models' own): are there unfinished sequences?
"""

import functools
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from plimsoll.run.observe.defects import Defects
from plimsoll.wrapping import around, replace, wrapper

_LENGTH = "_plimsoll_length"  # the length at the previous step; an attribute, because a criterion may have no hash


class _Generation(threading.local):
    """The last evaluation of this thread's length criterion. An inner generation (of an assistant) ends before the outer one
    evaluates its criterion again."""

    criterion: Any = None  # None after a loop has taken the answer
    length = 0
    is_over = False


_generation = _Generation()


def _on_device(value: Any) -> bool:
    """True if a read-back of `value` would give zeros, outside of compilation."""
    return isinstance(value, torch.Tensor) and value.is_cuda and not torch.compiler.is_compiling()


def note_the_length(stopping_criteria: ModuleType) -> None:
    criterion = getattr(stopping_criteria, "MaxLengthCriteria", None)
    if criterion is None:
        return

    @around(criterion, "__call__")
    def noted(ask: Any, self: Any, input_ids: Any, *args: Any, **options: Any) -> Any:
        answer = ask(self, input_ids, *args, **options)
        if _on_device(input_ids):
            _note(self, input_ids.shape[1])
        return answer


def _note(criterion: Any, length: int) -> None:
    """A list may have two length criteria. Assisted decoding evaluates them for its candidates first."""
    is_over = _generation.is_over and length == _generation.length
    _generation.is_over = is_over or length >= criterion.max_length
    _generation.criterion, _generation.length = criterion, length


def _is_over(defects: Defects) -> bool:
    """True if the length is reached, or if it stopped to grow."""
    criterion, length, is_over = _generation.criterion, _generation.length, _generation.is_over
    _generation.criterion, _generation.is_over = None, False
    if criterion is None:
        return False
    is_stuck = vars(criterion).get(_LENGTH) == length
    vars(criterion)[_LENGTH] = length
    if is_stuck and not is_over:
        defects.note(
            f"a generation was ended at token {length} of {criterion.max_length}: the number of tokens that a step accepts "
            "is a read-back (assisted decoding), and with zero it would never end"
        )
    return is_over or is_stuck


def end_at_the_length(defects: Defects, utils: ModuleType) -> None:
    calls: dict[str, Callable[..., Any]] = {
        "_get_stopping_criteria": _begin,
        "_has_unfinished_sequences": functools.partial(_has_unfinished, defects),
        "_beam_search_has_unfinished_sequences": _beams_go_on,
        "_beam_search": _whole_beams,
    }
    mixin = getattr(utils, "GenerationMixin", None)
    for name, call in calls.items():
        if callable(getattr(mixin, name, None)):
            replace(mixin, name, wrapper(call))


def _begin(get_criteria: Any, *args: Any, **options: Any) -> Any:
    """Clears the state of an earlier generation, which an error may have ended."""
    criteria = get_criteria(*args, **options)
    _generation.criterion, _generation.is_over = None, False
    for criterion in criteria:
        getattr(criterion, "__dict__", {}).pop(_LENGTH, None)
    return criteria


def _has_unfinished(
    defects: Defects,
    has_unfinished: Any,
    self: Any,
    this_peer_finished: Any,
    synced_gpus: bool,
    device: Any,
    *args: Any,
    **options: Any,
) -> Any:
    unfinished = has_unfinished(self, this_peer_finished, synced_gpus, device, *args, **options)
    if getattr(device, "type", None) != "cuda" or torch.compiler.is_compiling():
        return unfinished
    is_over = defects.attempt_or(False, _is_over, defects)
    if synced_gpus:  # The read-back was a sum over the ranks, which are in this rank's state.
        unfinished = this_peer_finished is not True
    return unfinished and not is_over


def _beams_go_on(have_unfinished: Any, *args: Any, **options: Any) -> Any:
    """Zero means that no beam can improve. Here beams can improve until the length is reached."""
    unfinished = have_unfinished(*args, **options)
    if not _on_device(unfinished):
        return unfinished
    unfinished.item()  # the read-back that the caller would do
    return True


def _whole_beams(search: Any, self: Any, input_ids: Any, *args: Any, **options: Any) -> Any:
    """The library cuts the result to the longest beam's length, a read-back of zero. Here all beams have the full length."""
    found = search(self, input_ids, *args, **options)
    width = _generation.length
    if isinstance(found, torch.Tensor):
        return _uncut(found, width)
    for name, width in (("sequences", width), ("beam_indices", width - input_ids.shape[1])):
        if _on_device(getattr(found, name, None)):
            found[name] = _uncut(found[name], width)
    return found


def _uncut(rows: Any, width: int) -> Any:
    """The rows, which were cut to length zero, with `width` elements."""
    if not _on_device(rows) or rows.dim() != 2 or rows.shape[1] > 0 or rows.shape[0] == 0:
        return rows
    end = rows.storage_offset() + (rows.shape[0] - 1) * rows.stride(0) + width
    is_there = end * rows.element_size() <= rows.untyped_storage().nbytes()
    return rows.as_strided((rows.shape[0], width), rows.stride()) if is_there else rows
