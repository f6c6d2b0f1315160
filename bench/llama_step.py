"""Trains Llama with FSDP2 for a few steps and prints, as JSON, how long the build and each step took.

    llama_step.py MODEL STEPS OUT.json             on the GPU of the process: the pretend GPU under `plimsoll run`
    llama_step.py MODEL STEPS OUT.json --fake      under FakeTensorMode, watched by torch's own FSDPMemTracker
    llama_step.py MODEL STEPS OUT.json --tracked   as the first, and then in turns without and with plimsoll.FSDPMemTracker

With `--no-checkpoint` nothing is recomputed.

The world size comes from WORLD_SIZE. All train the same model in the same way: full activation checkpointing, bf16
with fp32 reduction, AdamW in its foreach form, batch 1, sequence 8192.
"""

import contextlib
import gc
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from checkpointing import checkpoint_layers
from llama import PRESETS, Llama
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from train_llama import shard

BATCH, SEQUENCE = 1, 8192


def build(name: str, mesh: DeviceMesh) -> Llama:
    with torch.device("meta"):
        model = Llama(PRESETS[name], positions=2 * SEQUENCE)
    if "--no-checkpoint" not in sys.argv:
        checkpoint_layers(model.layers, "full")
    shard(model, mesh, reshard=True)
    return model.to_empty(device="cuda")


def step(model: Llama, optimizer: torch.optim.Optimizer) -> None:
    tokens = torch.empty(BATCH, SEQUENCE, dtype=torch.long, device="cuda")
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def in_turns(model: Llama, optimizer: torch.optim.Optimizer, turns: int) -> dict[str, list[float]]:
    """Steps without and with plimsoll's tracker, alternating, so that other load hits both. A tracker is called for allocations
    as soon as it exists, so each turn makes its own tracker. The first step with a tracker names each tensor. `around` is
    the time to make, enter, leave and drop the tracker."""
    from plimsoll import FSDPMemTracker

    seconds: dict[str, list[float]] = {"plain": [], "first": [], "tracked": [], "around": []}

    def timed(kind: str) -> None:
        began = time.perf_counter()
        step(model, optimizer)
        seconds[kind].append(time.perf_counter() - began)

    for _ in range(turns):
        for _ in range(3):
            timed("plain")
        began = time.perf_counter()
        with FSDPMemTracker(model, optimizer):
            timed("first")
            for _ in range(3):
                timed("tracked")
        seconds["around"].append(time.perf_counter() - began - seconds["first"][-1] - sum(seconds["tracked"][-3:]))
        gc.collect()
    return seconds


def main() -> None:
    name, steps, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    fake = "--fake" in sys.argv
    world_size = int(os.environ["WORLD_SIZE"])
    mode = contextlib.nullcontext()
    if fake:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.testing._internal.distributed.fake_pg import FakeStore

        mode = FakeTensorMode()
        dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    else:
        dist.init_process_group("nccl")
    torch.backends.cuda.enable_cudnn_sdp(False)
    mesh = init_device_mesh("cuda", (world_size,))
    with mode:
        began = time.perf_counter()
        model = build(name, mesh)
        built = time.perf_counter() - began
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
        tracker = contextlib.nullcontext()
        if fake:
            from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker

            tracker = FSDPMemTracker(model, optimizer)
        seconds = []
        with tracker:
            for _ in range(steps):
                began = time.perf_counter()
                step(model, optimizer)
                seconds.append(time.perf_counter() - began)
                if fake:
                    tracker.reset_mod_stats()  # the tracker keeps one step at a time
        turns = in_turns(model, optimizer, steps) if "--tracked" in sys.argv else {}
    Path(out).write_text(json.dumps({"build_seconds": built, "step_seconds": seconds, **turns}))


if __name__ == "__main__":
    main()
