"""Values of small device tensors that the host knows: it sent integers, or filled the tensor with one number.

[Note: known values] Three kinds of operators get kernels that do the same work and also keep the result's values on the host:
copies of a host's tensor, fills with one number, and comparisons (for padding). The values are stored with the tensor's storage, so
views share them and they are freed with the memory. A later write raises torch's version counter, which makes them unknown.
`nonzero`, which each indexing by a mask calls in forward and backward, gets such a kernel too.

Other operators compute known values only within `KnownValues`, which wraps the questions of libraries. There an operator runs on the
device and again on the host's values of its arguments, and a read-back returns the host's value. Tensors with more dimensions than
a batch of sequences may be large and are not followed.

Before torch 2.9 torch's kernels cannot be called from Python, so no values are known.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from plimsoll.run.pretend_control import Control
from plimsoll.wrapping import around

_ATTRIBUTE = "_plimsoll_known"
_MOST_NUMBERS = 1 << 22
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_OF_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}

_Number = bool | int | float | complex
_Kernel = Callable[..., torch.Tensor]
_control: Control | None = None
_kept: list[torch.library.Library] = []  # Held: a kernel is removed with its library.


class _Thread(threading.local):
    asking = False  # True within KnownValues


_thread = _Thread()


class _Known(NamedTuple):
    numbers: torch.Tensor | _Number  # flat, in the storage's order; or one number for all elements
    dtype: torch.dtype
    version: int | None


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _is_small(tensor: Any) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.is_cuda
        and tensor.layout is torch.strided
        and 0 < tensor.numel() <= _MOST_NUMBERS
        and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()  # it is the whole storage
    )


def _keep(tensor: torch.Tensor, numbers: torch.Tensor | _Number) -> None:
    vars(tensor.untyped_storage())[_ATTRIBUTE] = _Known(numbers, tensor.dtype, _version(tensor))


def note(tensor: torch.Tensor, numbers: torch.Tensor) -> None:
    """Stores the values of `tensor` on the host, if it is small and has integers."""
    if tensor.dtype in _WHOLE and _is_small(tensor):
        flat = torch.empty(tensor.numel(), dtype=tensor.dtype)
        flat.as_strided(tensor.size(), tensor.stride()).copy_(numbers)
        _keep(tensor, flat)


def _known(tensor: torch.Tensor) -> _Known | None:
    if type(tensor) is not torch.Tensor or not tensor.is_cuda or tensor.layout is not torch.strided:
        return None
    known = vars(tensor.untyped_storage()).get(_ATTRIBUTE)
    return known if known is not None and (known.dtype, known.version) == (tensor.dtype, _version(tensor)) else None


def on_host(tensor: torch.Tensor, sent: bool = False) -> torch.Tensor | None:
    """The tensor's values on the host, or None if unknown. `sent`: also None if it was filled with one number."""
    known = _known(tensor)
    if known is None:
        return None
    if isinstance(known.numbers, torch.Tensor):
        return known.numbers.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    return None if sent else torch.tensor(known.numbers, dtype=known.dtype).expand(tensor.size())


def begin(control: Control | None) -> None:
    """REQUIRES: torch is imported. Values that were sent before are unknown. Without `control`, read-backs give zeros."""
    global _control
    _control = control
    if _kept or not hasattr(torch.library, "get_kernel"):
        return
    aten = torch.library.Library("aten", "IMPL")
    _kept.append(aten)
    kernels: dict[str, _Kernel] = {"_to_copy": _sent, "fill_.Scalar": _filled, "nonzero": _found}
    for operator in (torch.eq, torch.ne, torch.ge, torch.gt, torch.le, torch.lt):
        kernels[f"{operator.__name__}.Scalar"] = functools.partial(_compared, operator)
        kernels[f"{operator.__name__}.Tensor"] = functools.partial(_compared_with_another, operator)
    for name, followed in {"constant_pad_nd": torch.constant_pad_nd, "cat": torch.cat}.items():
        kernels[name] = functools.partial(_followed, followed)
    for name, by in kernels.items():
        kernel = torch.library.get_kernel(f"aten::{name}", "CUDA")
        aten.impl(name, functools.partial(by, kernel.call_boxed), "CUDA", with_keyset=True)


def _sent(move: _Kernel, keys: torch.DispatchKeySet, value: Any, **options: Any) -> torch.Tensor:
    given = _as_tensor(value)
    if _thread.asking and (numbers := on_host(given)) is not None:
        with _answered(numbers):
            found = move(keys, given, **options)
        if found.device.type == "cpu":
            return found.copy_(numbers)
    else:
        found = move(keys, given, **options)
    if found.dtype in _WHOLE and _is_small(found):
        known = _known(given)
        if known is not None and not isinstance(known.numbers, torch.Tensor):
            _keep(found, known.numbers)
        elif (numbers := _sent_by_host(given)) is not None:
            note(found, numbers)
    return found


def _as_tensor(value: Any) -> torch.Tensor:
    """A Python kernel gets a number if C++ has a scalar tensor."""
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=_OF_NUMBERS[type(value)])


def _filled(fill: _Kernel, keys: torch.DispatchKeySet, tensor: torch.Tensor, value: _Number) -> torch.Tensor:
    found = fill(keys, tensor, value)
    if _is_small(tensor):
        _keep(tensor, value)
    return found


def _compared(
    operator: Callable[[Any, Any], torch.Tensor],
    compare: _Kernel,
    keys: torch.DispatchKeySet,
    tensor: torch.Tensor,
    other: Any,
) -> torch.Tensor:
    found = compare(keys, tensor, other)
    if _is_small(found):
        one, another = _sent_by_host(tensor), _sent_by_host(other)
        if one is not None and another is not None:
            note(found, operator(one, another))
    return found


def _compared_with_another(
    operator: Callable[[Any, Any], torch.Tensor], compare: _Kernel, keys: torch.DispatchKeySet, tensor: Any, other: Any
) -> torch.Tensor:
    return _compared(operator, compare, keys, _as_tensor(tensor), _as_tensor(other))


def _sent_by_host(value: Any) -> Any:
    return on_host(value, sent=True) if isinstance(value, torch.Tensor) and value.device.type != "cpu" else value


def _followed(
    operator: _Kernel, kernel: _Kernel, keys: torch.DispatchKeySet, *args: Any, **options: Any
) -> torch.Tensor:
    """An operator that fills its result in parts, so that the values of a fill are not those of the result."""
    found = kernel(keys, *args, **options)
    if _is_small(found):
        _note_or_forget(found, _computed_on_host(operator, args, options) if found.dtype in _WHOLE else None)
    return found


def _note_or_forget(tensor: torch.Tensor, numbers: torch.Tensor | None) -> None:
    vars(tensor.untyped_storage()).pop(_ATTRIBUTE, None)
    if numbers is not None:
        note(tensor, numbers)


def _found(find: _Kernel, keys: torch.DispatchKeySet, tensor: torch.Tensor) -> torch.Tensor:
    where = on_host(tensor, sent=True)
    if where is None:
        return find(keys, tensor)
    places = where.nonzero()
    with _answered(torch.tensor(len(places), dtype=torch.int32)):
        found = find(keys, tensor)
    if found.shape == places.shape:
        note(found, places)
    return found


@contextlib.contextmanager
def _answered(numbers: torch.Tensor) -> Iterator[None]:
    """The next read-back within gives `numbers`."""
    numbers = numbers.contiguous()
    if _control is not None:
        _control.answer_next_read_back(numbers.data_ptr(), numbers.numel() * numbers.element_size())
    try:
        yield
    finally:
        if _control is not None:
            _control.answer_next_read_back(0, 0)


class KnownValues(TorchDispatchMode):
    """Within it, results computed from known values are known, and read-backs give them. If values decide an operator's output
    shape, the shape comes from the host's values."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # If not, compiled code would run eagerly.

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **options)
        if func is torch.ops.aten._local_scalar_dense.default and (numbers := on_host(args[0])) is not None:
            with _answered(numbers):
                func(*args, **options)
            return numbers.item()
        device = _device_of(args) if _shape_is_by_values(func) else None
        if device is not None and (numbers := _computed_on_host(func, args, options)) is not None:
            return tree_map_only(torch.Tensor, functools.partial(_as_on, device), numbers)
        found = func(*args, **options)
        if _is_small(found) and not func.is_view and not func._schema.is_mutable:
            follows = found.dim() <= 2 and found.dtype in _WHOLE and _is_decided(func)
            _note_or_forget(found, _computed_on_host(func, args, options) if follows else None)
        return found


def _is_decided(func: Any) -> bool:
    """True if the arguments determine the result: no random numbers, no uninitialized memory."""
    return torch.Tag.nondeterministic_seeded not in func.tags and "empty" not in func.__name__


def _shape_is_by_values(func: Any) -> bool:
    """False for indexing by a mask, whose operators have their own kernels: see [Note: known values]."""
    return torch.Tag.dynamic_output_shape in func.tags and func._schema.name not in (
        "aten::nonzero",
        "aten::masked_select",
    )


def _device_of(args: tuple[Any, ...]) -> torch.device | None:
    """The first CUDA device of the arguments, or None."""
    return next(
        (value.device for value in tree_leaves(args) if isinstance(value, torch.Tensor) and value.is_cuda), None
    )


def _as_on(device: torch.device, numbers: torch.Tensor) -> torch.Tensor:
    found = torch.empty_like(numbers, device=device)
    note(found, numbers)
    return found


def _computed_on_host(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The operator's result on the host. None if the host does not know all arguments."""
    given = [value for value in tree_leaves((args, options)) if isinstance(value, torch.Tensor)]
    if any(tensor.device.type != "cpu" and on_host(tensor) is None for tensor in given):
        return None
    args, options = tree_map_only(
        torch.Tensor, lambda tensor: on_host(tensor) if tensor.is_cuda else tensor, (args, options)
    )
    args, options = tree_map_only(torch.device, lambda _: torch.device("cpu"), (args, options))
    return func(*args, **options)


def where_known(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which decides by read-backs, run within `KnownValues`."""

    @functools.wraps(function)
    def asked(*args: Any, **options: Any) -> Any:
        if torch.compiler.is_compiling() or _thread.asking:
            return function(*args, **options)
        _thread.asking = True
        try:
            with KnownValues():
                return function(*args, **options)
        finally:
            _thread.asking = False

    return asked


def ask_again_in_backward(checkpoint: ModuleType) -> None:
    """If values were known in a forward, its recomputation for an activation checkpoint knows them too."""
    frame, function = getattr(checkpoint, "_CheckpointFrame", None), getattr(checkpoint, "CheckpointFunction", None)
    if frame is None or function is None:
        return

    @around(frame, "__init__")
    def init_frame(init: Any, self: Any, recompute_fn: Callable[..., Any], *args: Any, **options: Any) -> None:
        init(self, where_known(recompute_fn) if _thread.asking else recompute_fn, *args, **options)

    @around(function, "forward")
    def forward_of_reentrant(forward: Any, ctx: Any, run_function: Callable[..., Any], *args: Any) -> Any:
        outputs = forward(ctx, run_function, *args)
        if _thread.asking:
            ctx.run_function = where_known(ctx.run_function)
        return outputs
