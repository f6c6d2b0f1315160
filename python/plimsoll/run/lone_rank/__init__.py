"""Lets ``torch.distributed`` run alone in one process, as any rank of any world size.

The process groups stay torch's own: ``nccl`` is the real ProcessGroupNCCL, on a pretend NCCL whose collectives complete at
once. This package replaces only code that waits for a peer, uses data from a peer, or costs more with more peers:

    store             stores: answers for a peer that would set a key
    cpu_backend       gloo: no connections
    cpu_reductions    reductions on the CPU, and the mean of a gradient for DDP
    objects           object collectives: torch's device tensors, with the objects of this process
    ddp_agreement     a broadcast or gather of DDP's sizes returns the values that this rank sent
    checkpoint        a rank saves and loads its own part of a distributed checkpoint
    fsdp1_state       FSDP1's optimizer state: which peers hold state of which parameters, and its sizes
    watchdog_works    tensors of works without a wait are freed at the point at which a long step frees them
    pipelining        the metadata that a neighbour would send, if this rank knows it
    parameter_shards  only the shards that are used are made

One assumption holds throughout: **the peers hold the same values as this rank**. If only another rank knows the received values
(a broadcast from elsewhere, a receive), the argument stays as it was passed in. This package never saves device memory: it makes
each allocation that torch makes.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["install", "script_ended"]

_installed = False


def install() -> None:
    """Makes torch.distributed run alone. Call after ``import torch`` and before the user's code; once is enough.

    Does nothing if torch was built without torch.distributed.
    """
    global _installed
    import torch

    if _installed or not torch.distributed.is_available():
        return
    _installed = True

    from plimsoll.run.lone_rank import (
        checkpoint,
        cpu_backend,
        cpu_reductions,
        ddp_agreement,
        fsdp1_state,
        objects,
        parameter_shards,
        pipelining,
        store,
        watchdog_works,
    )
    from plimsoll.run.torch_patches.after_import import after_import

    _rebind(
        store.replacements()
        | cpu_backend.replacements()
        | objects.replacements()
        | ddp_agreement.replacements()
        | watchdog_works.replacements()
    )
    changes: dict[str, Callable[[ModuleType], None]] = {
        "torch.nn.parallel.distributed": cpu_reductions.change_ddp,
        "torch.distributed.checkpoint.default_planner": checkpoint.change_planner,
        "torch.distributed.checkpoint.utils": checkpoint.change_utils,
        "torch.distributed.fsdp._optim_utils": fsdp1_state.change_utils,
        "torch.distributed.fsdp.fully_sharded_data_parallel": fsdp1_state.change_fsdp,
        "torch.distributed.fsdp._fully_shard._fsdp_param": parameter_shards.make_shards_on_access,
        "torch.distributed._composable.fsdp._fsdp_param": parameter_shards.make_shards_on_access,  # torch 2.5
        "torch.distributed.tensor.placement_types": parameter_shards.count_one_rank,
        "torch.distributed.pipelining.stage": pipelining.change_stages,
        "torch.distributed.pipelining.schedules": pipelining.change_schedules,
    }
    for module, change in changes.items():
        after_import.call(module, change)


def script_ended() -> None:
    """Drains the watchdogs of groups that the script has not destroyed. A watchdog with pending works would call CUDA while the
    process ends, and torch would abort."""
    if _installed:
        from plimsoll.run.lone_rank import watchdog_works

        watchdog_works.wait_for_watchdogs()


def _rebind(replacements: dict[str, Any]) -> None:
    """Replaces these names in every imported module of torch: the modules import the names from one another."""
    from torch._C import _distributed_c10d

    c10d = sys.modules["torch.distributed.distributed_c10d"]
    originals = {}
    for name in replacements:
        holder = c10d if hasattr(c10d, name) else _distributed_c10d
        if hasattr(holder, name):
            originals[name] = getattr(holder, name)
    for module_name, module in list(sys.modules.items()):
        if module is None or not module_name.startswith("torch"):
            continue
        names = getattr(module, "__dict__", {})
        for name, original in originals.items():
            if names.get(name) is original:
                setattr(module, name, replacements[name])
