"""The drop-in's side of test_fsdp_tracker.py: the report of plimsoll.FSDPMemTracker on the step of fsdp_tracker.py. The same cases and
answers, without the allocator's counts."""

import gc

import torch
from fsdp_memory import answer_cases, settle, start_world
from fsdp_tracker import plain, take_workspaces
from fsdp_training import Training

from plimsoll import FSDPMemTracker


def run(case):
    start_world(case.number("world"), case.number("rank"))
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.memory.empty_cache()
    take_workspaces()
    training = Training(case, "cuda")
    inputs, targets = training.batch(case.number("rank"))
    tracker = FSDPMemTracker(training.model, training.optimizer)
    tracker.track_inputs((inputs, targets))
    points = {}

    def look(point):
        points[point] = plain(tracker.get_tracker_snapshot("current"))  # noqa: F821

    torch.cuda.reset_peak_memory_stats()
    with tracker:
        training.watched_step(inputs, targets, look)
    highest = torch.cuda.memory_stats()["active_bytes.all.peak"]
    modules = {
        stats.mod_fqn: {state.value: [plain(snapshot) for snapshot in all] for state, all in stats.snapshots.items()}
        for stats in tracker.memory_tracking.values()
    }
    found = {
        "points": points,
        "peak": plain(tracker.get_tracker_snapshot("peak")),
        "modules": modules,
        "highest": highest,
    }
    settle()
    del training, tracker, inputs, targets
    while gc.collect():
        pass
    return found


if __name__ == "__main__":
    answer_cases(run)
