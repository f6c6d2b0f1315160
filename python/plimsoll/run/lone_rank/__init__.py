"""Lets ``torch.distributed`` run alone in one process, as any rank of any world size.

The process groups stay torch's own: ``nccl`` is the real ProcessGroupNCCL, on a pretended NCCL whose collectives
complete at once. What is replaced is only what would wait for a peer, believe what a peer is said to have sent, or take
longer the more peers there are:

========================  ==============================================================================================
the stores                ``store.py``: a key that nobody set is answered for the peer that would have set it
gloo                      ``cpu_backend.py``: no connections; CPU collectives see peers that hold what we hold
reductions on the CPU     ``cpu_reductions.py``: a sum is this rank's values times the group's size, and so on
DDP on the CPU            ``cpu_ddp.py``: a gradient's mean over peers that hold the same is the gradient
object collectives        ``objects.py``: the same device tensors as torch's, the objects taken from this process
DDP's agreement on sizes  ``ddp_agreement.py``: what is broadcast or gathered is what this rank sent
distributed checkpoints   ``checkpoint.py``: a rank saves and loads its own part
FSDP1's optimizer state   ``fsdp1_state.py``: whose parameters' state only peers hold, and of which sizes
works nobody waits for    ``watchdog_works.py``: what they keep is let go of where a long step would have let go of it
pipeline stages           ``pipelining.py``: what a neighbour would tell, where it is known here
FSDP2's pieces            ``parameter_shards.py``: a parameter is cut for this rank, and not once for each rank there is
========================  ==============================================================================================

The one assumption throughout: **the peers hold the same values as this rank**. Where a rank receives what only another
rank can know (a broadcast from elsewhere, a receive), its own argument stays as it was passed in.

Device memory is never saved by this package: every allocation that torch makes on the real path is made.
"""

import sys
from typing import Any

__all__ = ["install", "script_ended"]

_installed = False


def install() -> None:
    """Makes torch.distributed run alone. Call after ``import torch``, before the user's code; once is enough.

    Does nothing for a torch that was built without torch.distributed.
    """
    global _installed
    import torch

    if _installed or not torch.distributed.is_available():
        return
    _installed = True

    from plimsoll.run.lone_rank import (
        checkpoint,
        cpu_backend,
        cpu_ddp,
        ddp_agreement,
        fsdp1_state,
        objects,
        parameter_shards,
        pipelining,
        store,
        watchdog_works,
    )
    from plimsoll.run.torch_patches.after_import import after_import

    replacements: dict[str, Any] = {}
    replacements.update(store.replacements())
    replacements.update(cpu_backend.replacements())
    replacements.update(objects.replacements())
    replacements.update(ddp_agreement.replacements())
    replacements.update(watchdog_works.replacements())
    _rebind(replacements)
    after_import.call("torch.nn.parallel.distributed", cpu_ddp.replace_in)
    checkpoint.install()
    fsdp1_state.install()
    parameter_shards.install()
    pipelining.install()


def script_ended() -> None:
    """A group that the script has not destroyed may live on while the process is taken apart, and its watchdog with it. With
    nothing left to look at the watchdog asks CUDA for nothing, which torch would answer by an abort at that point."""
    if _installed:
        from plimsoll.run.lone_rank import watchdog_works

        watchdog_works.let_the_watchdog_look()


def _rebind(replacements: dict[str, Any]) -> None:
    """Gives every module of torch that already holds one of these names the replacement.

    torch's modules import these names from one another, so that one assignment would not reach all of them.
    """
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
