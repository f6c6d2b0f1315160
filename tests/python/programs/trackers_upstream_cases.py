"""The program of test_trackers_upstream_cases.py: training under MemTracker or FSDPMemTracker, and the real memory beside it.
tracker_choice.py selects the tracker. For FSDP this process is one rank of many (`plimsoll run --world-size`, and on CPU torch's
fake process group).

On CPU, models have the same size as on the GPU, and large tensors are not computed (allocate_only.py).

Cases on standard input, one a line: the name of a scenario and words `key=value`; one line of JSON for each on standard output.
"""

import functools
import gc
import json
import sys

import torch
import torch.distributed as dist
import tracker_choice
from allocate_only import AllocateOnly
from cpu_peak import peak_on_cpu
from models import upstream_models as models
from torch import nn
from torch.distributed._composable import checkpoint as composable_checkpoint
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointWrapper,
    apply_activation_checkpointing,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

TRACKERS = tracker_choice.load()
GPU = torch.device("cuda", 0)


def settle():
    """Checks that earlier cases left only workspaces; returns the active bytes."""
    matrix = torch.ones(2, 2, device=GPU, requires_grad=True)
    (matrix @ matrix).sum().backward()
    del matrix
    while gc.collect():
        pass
    return torch.cuda.memory_stats()["active_bytes.all.current"]


def peak_on_gpu(run):
    """(the result of run(), the allocator's books while it ran)."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    found = run()
    stats = torch.cuda.memory_stats()
    return found, {"active_peak": stats["active_bytes.all.peak"], "active_after": stats["active_bytes.all.current"]}


def two_steps(model, optimizer, batch, reset=lambda: None):
    for step in range(2):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            reset()


def tracked(tracker, run):
    """Calls run() in the tracker's scope; returns the tracker's report."""
    with tracker:
        run()
    found = {kind: tracker_choice.plain(tracker.get_tracker_snapshot(kind)) for kind in ("current", "peak")}
    states = {
        stats.mod_fqn: {state.value: len(snapshots) for state, snapshots in stats.snapshots.items()}
        for stats in tracker.memory_tracking.values()
    }
    return {**found, "states": states}


def beside_the_allocator(device, ready, track):
    """A tracker's report on two steps, and the allocator's books. `ready()` returns a model, the trained part of it, the
    optimizer and the batch; `track(model, optimizer, batch)` returns the tracker. On CPU another such model first runs under
    the profiler."""

    def tracked_steps():
        model, (part, optimizer, batch) = ready()
        tracker = track(model, optimizer, batch)
        before = tracker_choice.plain(tracker.get_tracker_snapshot())
        return tracker, before, functools.partial(two_steps, part, optimizer, batch, tracker.reset_mod_stats)

    if device != "cpu":
        tracker, _, steps = tracked_steps()
        found, books = peak_on_gpu(lambda: tracked(tracker, steps))
        return {**found, **books}
    with AllocateOnly():
        model, training = ready()
        added = peak_on_cpu(functools.partial(two_steps, *training))
        tracker, before, steps = tracked_steps()
        return {**tracked(tracker, steps), "before": before, "added_at_most": added}


def training(device, build, batch_of):
    """Two steps with Adam under MemTracker."""

    def ready():
        with torch.device(device):
            model, batch = build(), batch_of()
        return model, (model, torch.optim.Adam(model.parameters(), foreach=True), batch)

    def track(*registered):
        tracker = TRACKERS.MemTracker()
        tracker.track_external(*registered)
        return tracker

    return beside_the_allocator(device, ready, track)


def stack(device):
    return training(
        device, lambda: models.stack(4, 512, torch.bfloat16), lambda: torch.randn(16, 512, dtype=torch.bfloat16)
    )


def checkpointed(device, reentrant="0"):
    build = functools.partial(models.Checkpointed, 4, 1024, torch.float16, reentrant == "1")
    return training(device, build, lambda: torch.empty(128, 1024, 1024, dtype=torch.float16))


def in_forward(device):
    """The batch is made in the scope, so it is not registered."""
    with torch.device(device):
        model = models.stack(4, 512, torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    tracker = TRACKERS.MemTracker()
    tracker.track_external(model, optimizer)

    def run():
        two_steps(model, optimizer, torch.randn(16, 512, dtype=torch.bfloat16, device=device), tracker.reset_mod_stats)

    found, books = peak_on_gpu(lambda: tracked(tracker, run))
    return {**found, **books}


def attribution(device):
    """The parameters, gradients and optimizer state at four points of a step."""
    with torch.device(device):
        model = models.wide_and_narrow(3, 128, torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    tracker = TRACKERS.MemTracker()
    tracker.track_external(model, optimizer)
    points = {}

    def bytes_of(tensors):
        return sum(tensor.nbytes for tensor in tensors if tensor.device.type == torch.device(device).type)

    def look(point):
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        state = [
            value for values in optimizer.state.values() for value in values.values() if isinstance(value, torch.Tensor)
        ]
        there = {
            "Parameter": bytes_of(model.parameters()),
            "Gradient": bytes_of(gradients),
            "Optstate": bytes_of(state),
        }
        points[point] = {"there": there, "said": tracker_choice.plain(tracker.get_tracker_snapshot())[device]}

    with tracker:
        batch = torch.randn(16, 128, device=device)
        look("before forward")
        model(batch).sum().backward()
        look("after backward")
        optimizer.step()
        look("after step")
        optimizer.zero_grad()
        look("after zero_grad")
    return {"points": points}


def start_rank(device):
    """Rank 0 of four, unless `plimsoll run` sets the world size."""
    if not dist.is_initialized():
        if device == "cpu":
            dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
        else:
            dist.init_process_group("nccl")
    return init_device_mesh(torch.device(device).type, (dist.get_world_size(),))


def fsdp_training(device, build, batch_of, optimizer_of, part_of=lambda model: model):
    """Two steps under FSDPMemTracker. `build(mesh)` makes the model."""
    mesh = start_rank(device)

    def ready():
        with torch.device("meta" if device == "cpu" else device):
            model = build(mesh)
        if device == "cpu":  # Without initial values, which would take time.
            model.to_empty(device=device)
        with torch.device(device):
            batch = batch_of()
        return model, (part_of(model), optimizer_of(model.parameters()), batch)

    def track(model, optimizer, batch):
        tracker = TRACKERS.FSDPMemTracker(model, optimizer)
        tracker.track_inputs((batch,))
        return tracker

    return beside_the_allocator(device, ready, track)


def fsdp_groups(device, reshard, offload):
    """Several groups of parameters, mixed precision, and shards on the CPU with offload."""

    def build(mesh):
        model = nn.Sequential(*(models.Widening(2048, 4) for _ in range(4)))
        shard = functools.partial(
            fully_shard, mesh=mesh, reshard_after_forward=reshard == "1",
            offload_policy=CPUOffloadPolicy(pin_memory=False) if offload == "1" else OffloadPolicy(),
            mp_policy=MixedPrecisionPolicy(param_dtype=torch.float16, reduce_dtype=torch.float32),
        )  # fmt: skip
        for block in model:
            shard(block)
        return shard(model)

    adam = functools.partial(torch.optim.Adam, lr=1e-2)
    return fsdp_training(device, build, lambda: torch.empty(8192, 2048), adam)


def fsdp_part(device):
    """Forward and backward of only a part."""

    def build(mesh):
        model = nn.Sequential(*(models.Widening(2048, 4) for _ in range(3)))
        for block in model:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    adam = functools.partial(torch.optim.Adam, lr=1e-2, foreach=True)
    return fsdp_training(device, build, lambda: torch.empty(8, 2048), adam, part_of=lambda model: model[0])


def fsdp_checkpointed(device, reshard, kind):
    """Blocks that are recomputed in backward, with the wrapper or the composable function."""

    def build(mesh):
        model = models.TiedTransformer()
        shard = functools.partial(fully_shard, mesh=mesh, reshard_after_forward=reshard == "1")
        if kind == "wrapper":
            apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, models.Block))
        for module in list(model.modules()):
            if kind == "wrapper" and isinstance(module, CheckpointWrapper):
                shard(module)
            elif kind == "composable" and isinstance(module, models.Block):
                composable_checkpoint(module)
                shard(module)
        return shard(model)

    adam = functools.partial(torch.optim.Adam, lr=1e-2, foreach=False)
    return fsdp_training(device, build, lambda: torch.randint(0, 8192, (16, 512)), adam)


def fsdp_pairs(device):
    """Modules that were sharded together in pairs."""

    def build(mesh):
        model = nn.Sequential(*(part for _ in range(2) for part in (nn.RMSNorm(128), nn.Linear(128, 128))))
        for first in (0, 2):
            fully_shard([model[first], model[first + 1]], mesh=mesh)
        return fully_shard(model, mesh=mesh)

    return fsdp_training(device, build, lambda: torch.randn(16, 128), functools.partial(torch.optim.Adam, lr=1e-2))


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        stack,
        checkpointed,
        in_forward,
        attribution,
        fsdp_groups,
        fsdp_part,
        fsdp_checkpointed,
        fsdp_pairs,
    )
}


def main():
    gc.freeze()  # The collector then skips the imported objects.
    for line in sys.stdin.read().splitlines():
        name, *words = line.split()
        unregistered = settle()
        torch.manual_seed(0)
        found = SCENARIOS[name](**dict(word.split("=") for word in words))
        print(json.dumps({**found, "unregistered": unregistered}), flush=True)
        del found


if __name__ == "__main__":
    main()
