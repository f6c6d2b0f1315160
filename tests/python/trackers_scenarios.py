"""What test_trackers_scenarios.py runs: training under MemTracker or FSDPMemTracker, and beside it what memory there was in
fact. The trackers are those of trackers_which.py; for FSDP this process is one rank of many (`plimsoll run --world-size`).

Cases on standard input, one a line: the name of a scenario and words `key=value`; one line of JSON for each on standard output.
"""

import functools
import gc
import json
import sys

import torch
import torch.distributed as dist
import trackers_models as models
import trackers_which
from torch import nn
from torch.distributed._composable import checkpoint as composable_checkpoint
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper, apply_activation_checkpointing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

TRACKERS = trackers_which.load()
GPU = torch.device("cuda", 0)


def settle():
    """Nothing of earlier cases is left but workspaces; returns what is active nevertheless."""
    matrix = torch.ones(2, 2, device=GPU, requires_grad=True)
    (matrix @ matrix).sum().backward()
    del matrix
    while gc.collect():
        pass
    return torch.cuda.memory_stats()["active_bytes.all.current"]


def peak_on_gpu(run):
    """(what run() returns, the allocator's books while it ran)."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    found = run()
    stats = torch.cuda.memory_stats()
    return found, {"active_peak": stats["active_bytes.all.peak"], "active_after": stats["active_bytes.all.current"]}


def peak_on_cpu(run):
    """What CPU memory run() takes at most beyond what there was, as torch's profiler hears of it from the allocator."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    events = [event for event in events if event.device_type() == torch._C._autograd.DeviceType.CPU]
    now = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest


def two_steps(model, optimizer, batch, reset=lambda: None):
    for step in range(2):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            reset()


def tracked(tracker, run):
    """run() in the tracker's scope, and what it says afterwards."""
    with tracker:
        run()
    found = {kind: trackers_which.plain(tracker.get_tracker_snapshot(kind)) for kind in ("current", "peak")}
    states = {
        stats.mod_fqn: {state.value: len(snapshots) for state, snapshots in stats.snapshots.items()}
        for stats in tracker.memory_tracking.values()
    }
    return {**found, "states": states}


def training(device, build, batch_of):
    """Two steps with Adam under MemTracker. On CPU the same is done first under the profiler, with another such model."""

    def ready():
        with torch.device(device):
            model = build()
            batch = batch_of()
        return model, torch.optim.Adam(model.parameters(), foreach=True), batch

    if device == "cpu":
        books = {"added_at_most": peak_on_cpu(functools.partial(two_steps, *ready()))}
    model, optimizer, batch = ready()
    tracker = TRACKERS.MemTracker()
    tracker.track_external(model, optimizer, batch)
    steps = functools.partial(two_steps, model, optimizer, batch, tracker.reset_mod_stats)
    if device == "cpu":
        books["before"] = trackers_which.plain(tracker.get_tracker_snapshot())
        return {**tracked(tracker, steps), **books}
    found, books = peak_on_gpu(lambda: tracked(tracker, steps))
    return {**found, **books}


def stack(device):
    return training(device, lambda: models.stack(4, 512, torch.bfloat16), lambda: torch.randn(16, 512, dtype=torch.bfloat16))


def checkpointed(device, reentrant="0"):
    batch, dim, dtype = (128, 1024, torch.float16) if device != "cpu" else (4, 64, torch.float32)
    build = functools.partial(models.Checkpointed, 4, dim, dtype, reentrant == "1")
    return training(device, build, lambda: torch.randn(batch, dim, dim, dtype=dtype))


def in_forward(device):
    """The batch is made in the scope, so that it is nothing that was registered."""
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
    """What is a parameter, a gradient, and state, at four points of a step."""
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
        state = [value for values in optimizer.state.values() for value in values.values() if isinstance(value, torch.Tensor)]
        there = {"Parameter": bytes_of(model.parameters()), "Gradient": bytes_of(gradients), "Optstate": bytes_of(state)}
        points[point] = {"there": there, "said": trackers_which.plain(tracker.get_tracker_snapshot())[device]}

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


def start_rank():
    if not dist.is_initialized():
        dist.init_process_group("nccl")
    return init_device_mesh("cuda", (dist.get_world_size(),))


def fsdp_training(model, optimizer, batch, run_model=None):
    tracker = TRACKERS.FSDPMemTracker(model, optimizer)
    tracker.track_inputs((batch,))
    steps = functools.partial(two_steps, run_model or model, optimizer, batch, tracker.reset_mod_stats)
    found, books = peak_on_gpu(lambda: tracked(tracker, steps))
    return {**found, **books}


def fsdp_groups(reshard, offload):
    """Several groups of parameters, mixed precision, and with offload shards on the CPU."""
    mesh = start_rank()
    with torch.device(GPU):
        model = nn.Sequential(*(models.Widening(2048, 4) for _ in range(4)))
        batch = torch.randn(8192, 2048)
    shard = functools.partial(
        fully_shard, mesh=mesh, reshard_after_forward=reshard == "1",
        offload_policy=CPUOffloadPolicy(pin_memory=False) if offload == "1" else OffloadPolicy(),
        mp_policy=MixedPrecisionPolicy(param_dtype=torch.float16, reduce_dtype=torch.float32),
    )  # fmt: skip
    for block in model:
        shard(block)
    shard(model)
    return fsdp_training(model, torch.optim.Adam(model.parameters(), lr=1e-2), batch)


def fsdp_part():
    """Forward and backward of a part only."""
    start_rank()
    with torch.device(GPU):
        model = nn.Sequential(*(models.Widening(2048, 4) for _ in range(3)))
        batch = torch.randn(8, 2048)
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=True)
    return fsdp_training(model, optimizer, batch, run_model=model[0])


def fsdp_checkpointed(reshard, kind):
    """Blocks that are run again in backward, by the wrapper or the composable form."""
    start_rank()
    with torch.device(GPU):
        model = models.TiedTransformer()
        tokens = torch.randint(0, 8192, (16, 512))
    shard = functools.partial(fully_shard, reshard_after_forward=reshard == "1")
    if kind == "wrapper":
        apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, models.Block))
    for module in list(model.modules()):
        if kind == "wrapper" and isinstance(module, CheckpointWrapper):
            shard(module)
        elif kind == "composable" and isinstance(module, models.Block):
            composable_checkpoint(module)
            shard(module)
    shard(model)
    return fsdp_training(model, torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False), tokens)


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (stack, checkpointed, in_forward, attribution, fsdp_groups, fsdp_part, fsdp_checkpointed)
}


def main():
    gc.freeze()  # What was imported is not looked through again and again.
    for line in sys.stdin.read().splitlines():
        name, *words = line.split()
        unregistered = settle()
        torch.manual_seed(0)
        found = SCENARIOS[name](**dict(word.split("=") for word in words))
        print(json.dumps({**found, "unregistered": unregistered}), flush=True)
        del found


if __name__ == "__main__":
    main()
