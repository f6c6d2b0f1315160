"""The program of test_trackers_sharded_fake.py: one rank of eight trains with FSDP2, or computes with a DTensor, on the pretend GPU or
under FakeTensorMode. Arguments: cases `tracker,what,memory` (`plimsoll` or `torch`, `fsdp` or `dtensor`, `real` or `fake`). Writes
a line of JSON for each. DTensor caches its propagated shapes, so a process runs only one fake case of each kind.
"""

import contextlib
import json
import os
import sys

import torch
import torch.distributed as dist
import tracker_choice
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

WORLD, WIDTH, BATCH, LAYERS = 8, 1000, 16, 3


def fsdp(Tracker, mesh):
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    batch = torch.ones(BATCH, WIDTH)
    tracker = Tracker(model, optimizer)
    tracker.track_inputs((batch,))
    points = {}
    with tracker:
        model(batch).sum().backward()
        points["backward"] = tracker.get_tracker_snapshot()
        optimizer.step()
        points["step"] = tracker.get_tracker_snapshot()
    return tracker, points, model


class Linear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        return nn.functional.linear(x, self.weight).relu()


def dtensor(Tracker, mesh):
    model = Linear(DTensor.from_local(torch.ones(WIDTH // WORLD, WIDTH), mesh, [Shard(0)]))
    batch = DTensor.from_local(torch.ones(BATCH, WIDTH), mesh, [Replicate()])
    tracker = Tracker()
    tracker.track_external(model, batch)
    points = {}
    with tracker:
        output = model(batch)
        points["forward"] = tracker.get_tracker_snapshot()
        output.sum().backward()
        points["backward"] = tracker.get_tracker_snapshot()
    return tracker, points, model


def run(which, what, memory, mesh):
    os.environ[tracker_choice.VARIABLE] = which
    trackers = tracker_choice.load()
    kind = trackers.FSDPMemTracker if what == "fsdp" else trackers.MemTracker
    with FakeTensorMode() if memory == "fake" else contextlib.nullcontext(), torch.device("cuda"):
        tracker, points, model = {"fsdp": fsdp, "dtensor": dtensor}[what](
            kind, mesh
        )  # The tracker forgets freed modules, so the model is kept.
        return {
            "points": {point: tracker_choice.plain(snapshot) for point, snapshot in points.items()},
            "peak": tracker_choice.plain(tracker.get_tracker_snapshot("peak")),
            "modules": {
                stats.mod_fqn: {
                    state.value: [tracker_choice.plain(one) for one in calls]
                    for state, calls in stats.snapshots.items()
                }
                for stats in tracker.memory_tracking.values()
            },
        }


if __name__ == "__main__":
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=WORLD)
    ranks = init_device_mesh("cuda", (WORLD,))
    for case in sys.argv[1:]:
        print(json.dumps(run(*case.split(","), ranks)), flush=True)
