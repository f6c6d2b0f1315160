"""Large tensors on the CPU that take memory but no time: the results of operators are allocated, and not computed or written."""

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

LARGE = 1 << 20  # bytes
VIEWS_BY_ANOTHER_NAME = {torch.ops.aten._unsafe_view.default}


class AllocateOnly(TorchDispatchMode):
    """Active while entered. Views stay views, in-place operators return their tensor, and small tensors are computed."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(kind is DTensor for kind in types):
            return NotImplemented  # Its operators on shards are dispatched again.
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        schema = func._schema
        computed = all(tensor.nbytes < LARGE for tensor in tensors) or any(tensor.is_meta for tensor in tensors)
        view = (
            func in VIEWS_BY_ANOTHER_NAME or any(value.alias_info for value in schema.returns) and not schema.is_mutable
        )
        copies = func.namespace == "fsdp" and schema.is_mutable and not schema.returns
        if (func.namespace != "aten" and not copies) or computed or view:
            return func(*args, **kwargs)
        if schema.is_mutable:
            return kwargs.get("out", args[0]) if schema.returns else None
        as_meta = tree_map_only(torch.Tensor, lambda tensor: torch.empty_like(tensor, device="meta"), (args, kwargs))
        given = func(*as_meta[0], **{**as_meta[1], **({"device": "meta"} if kwargs.get("device") else {})})
        return tree_map_only(
            torch.Tensor, lambda one: torch.empty_strided(one.shape, one.stride(), dtype=one.dtype), given
        )
