"""FSDPMemTracker: the memory of FSDP2 by category, at each of its stages."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn, optim
from torch.utils.weak import WeakIdKeyDictionary

from plimsoll.native import _C
from plimsoll.trackers.fsdp2 import parts
from plimsoll.trackers.fsdp2.patches import patches
from plimsoll.trackers.mem_tracker import FSDPModMemStats, MemTracker
from plimsoll.trackers.ref_types import FSDPModState, FSDPRefType
from plimsoll.trackers.results import Explanation


class FSDPMemTracker(MemTracker):
    """MemTracker for a model under ``fully_shard``. A drop-in for
    ``torch.distributed._tools.fsdp2_mem_tracker.FSDPMemTracker``: change only the import.

    Memory has its category from its first instant, and belongs to the FSDP module of its parameters, even if another module
    runs. Beyond torch's it takes any number of steps, modules that were sharded together, and several groups of parameters in
    a module. It has own categories for the all-gather's inputs, the reduce-scatter's outputs, accumulated and partial gradients.

    One rank of eight (in a script under ``plimsoll run --world-size 8``, use ``init_process_group("nccl")``):

    >>> import torch
    >>> import torch.distributed as dist
    >>> from torch.distributed.fsdp import fully_shard
    >>> from torch.testing._internal.distributed.fake_pg import FakeStore
    >>> from plimsoll import FSDPMemTracker
    >>> dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    >>> mesh = dist.init_device_mesh("cpu", (8,))
    >>> model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
    >>> for layer in model:
    ...     _ = fully_shard(layer, mesh=mesh)
    >>> model = fully_shard(model, mesh=mesh)
    >>> optimizer = torch.optim.AdamW(model.parameters())
    >>> batch = torch.randn(32, 64)
    >>> tracker = FSDPMemTracker(model, optimizer)
    >>> tracker.track_inputs((batch,))
    >>> with tracker:
    ...     for _ in range(2):
    ...         model(batch).sum().backward()
    ...         optimizer.step()
    ...         optimizer.zero_grad()
    >>> peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]
    >>> peak["Sharded Param"] == 4 * 4 * (64 * 64 + 64) // 8  # four layers of four-byte numbers: this rank has an eighth
    True
    >>> peak["Unsharded Param"] == 4 * (64 * 64 + 64)  # one layer is whole at a time
    True
    >>> tracker.memory_tracking[model[0]].mod_fqn
    'FSDPSequential.0'
    >>> dist.destroy_process_group()
    """

    _ref_class = FSDPRefType
    _state_class = FSDPModState

    def __init__(self, mod: nn.Module, optm: optim.Optimizer | None = None) -> None:
        parts.device_of(mod)  # For a module without fully_shard, it raises and says what to do.
        self._root_mod = mod
        self._optm = optm
        super().__init__()
        self._note_fakes([*mod.parameters(), *mod.buffers()])
        self._native.add_root(mod)
        if optm is not None:
            super().track_external(optm)

    def _make_native(self) -> "_C.Tracker":
        return _C.Tracker(parts)

    def track_inputs(self, inputs: tuple[Any, ...]) -> None:
        """Gives the tensors the category ``Inputs``."""
        flat: list[Any] = torch.utils._pytree.tree_leaves(inputs)
        self._note_fakes(flat)
        self._native.track_inputs(inputs)

    def track_external(self, *external: Any) -> None:
        """Does nothing: the model and the optimizer are known, and ``track_inputs`` takes inputs."""

    def _observe(self, scope: ExitStack) -> None:
        super()._observe(scope)
        patches.acquire()
        scope.callback(patches.release)
        for module in self._root_mod.modules():
            parts.state_of(module)

    @property
    def memory_tracking(self) -> WeakIdKeyDictionary:
        """The statistics of each FSDP module, by module. Modules that were sharded together share them."""
        tracking = WeakIdKeyDictionary()
        for plain in self._native.fsdp_module_stats():
            stats = FSDPModMemStats(plain, FSDPModState, FSDPRefType)
            for module in plain["modules"]:
                if module is not None:
                    tracking[module] = stats
        return tracking

    @property
    def module_tracking(self) -> WeakIdKeyDictionary:
        """MemTracker's statistics of every module, sharded by itself or not."""
        return super().memory_tracking

    def explain_first_state(self) -> Explanation | None:
        """The same for the peak of the optimizer's step that created its state; None before that step, or if the state was
        there from the start."""
        plain = self._native.explain_first_state()
        return Explanation.from_plain(plain) if plain is not None else None

    def _shown_modules(self) -> list[dict[str, Any]]:
        return self._native.fsdp_module_stats()
