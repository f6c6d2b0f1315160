"""torch's side of test_fsdp_tracker.py: the report of FSDPMemTracker on one training step on the pretend GPU, as one rank of many.

Cases on standard input, one a line, with words `world` and `rank`; one line of JSON for each on standard output:

    {"points": {point: SNAPSHOT, …}, "peak": SNAPSHOT, "modules": {name: {state: [SNAPSHOT, …], …}, …},
     "highest": bytes, "highest_of": {name: {state: [bytes, …], …}, …}}

A SNAPSHOT is {device: {category: bytes, …, "Total": bytes}}, with the GPU allocator's count as "Active" except at peaks; "highest"
has the allocator's counts at the peaks. cuBLAS's workspaces are left out. The points are those of Training.watched_step.
"""

import ctypes
import gc
import sys

import torch
from fsdp_memory import answer_cases, settle, start_world
from fsdp_training import Training
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker, _FSDPModState
from torch.distributed.fsdp import FSDPModule

WORKSPACES = 2 * (32 << 20)  # cuBLAS's workspaces of this thread and of autograd's thread.


class Tracker(FSDPMemTracker):
    """torch's tracker, which also records the allocator's peak at each of its peaks: this includes temporaries inside operators."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.highest, self.highest_of = 0, {}

    def _update_peak_stats(self, peak_state):
        super()._update_peak_stats(peak_state)
        self.note_highest(peak_state)

    def get_tracker_snapshot(self, type="current"):
        """A snapshot at the start or the end of a stage. `Active` is the allocator's total."""
        self.note_highest(_FSDPModState.PEAK_BW if self._mod_tracker.is_bw else _FSDPModState.PEAK_FW)
        snapshot = super().get_tracker_snapshot(type)
        if type == "current":
            active = torch.cuda.memory_stats()["active_bytes.all.current"]
            snapshot[torch.device("cuda", 0)]["Active"] = active - WORKSPACES
        return snapshot

    def note_highest(self, peak_state):
        """Gives the allocator's peak since the last call to the modules to which torch's gives its peak."""
        reached = torch.cuda.memory_stats()["active_bytes.all.peak"] - WORKSPACES
        torch.cuda.reset_peak_memory_stats()
        self.highest = max(self.highest, reached)
        for module in self.memory_tracking.values():
            if module.mod_fqn in self._mod_tracker.parents and peak_state in module.snapshots:
                peaks = self.highest_of.setdefault(module.mod_fqn, {}).setdefault(peak_state.value, [])
                peaks += [0] * (len(module.snapshots[peak_state]) - len(peaks))
                peaks[-1] = max(peaks[-1], reached)


def forgetting(post_backward):
    """A variable of torch's tracker keeps the last unsharded gradient alive while its group's post_backward runs. This empties
    the variable first."""

    def run(*arguments, **keywords):
        caller = sys._getframe(1)
        assert "unsharded_grad" in caller.f_locals
        caller.f_locals["unsharded_grad"] = None
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(caller), ctypes.c_int(0))
        return post_backward(*arguments, **keywords)

    return run


def let_go_of_gradients(model):
    for module in model.modules():
        if isinstance(module, FSDPModule):
            group = module._get_fsdp_state()._fsdp_param_group
            group.post_backward = forgetting(group.post_backward)


def take_workspaces():
    """Allocates the workspaces at the start, so that they do not decide which instant is the peak."""
    matrix = torch.ones(2, 2, device="cuda", requires_grad=True)
    (matrix @ matrix).sum().backward()


def plain(snapshot):
    return {
        str(device): {getattr(category, "value", category): bytes for category, bytes in books.items()}
        for device, books in snapshot.items()
    }


def run(case):
    start_world(case.number("world"), case.number("rank"))
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.memory.empty_cache()
    take_workspaces()
    training = Training(case, "cuda")
    let_go_of_gradients(training.model)
    inputs, targets = training.batch(case.number("rank"))
    torch.cuda.reset_peak_memory_stats()
    tracker = Tracker(training.model, training.optimizer)
    tracker.track_inputs((inputs, targets))
    points = {}

    def look(point):
        points[point] = plain(tracker.get_tracker_snapshot("current"))  # noqa: F821

    with tracker:
        training.watched_step(inputs, targets, look)
    modules = {
        stats.mod_fqn: {state.value: [plain(snapshot) for snapshot in all] for state, all in stats.snapshots.items()}
        for stats in tracker.memory_tracking.values()
    }
    found = {"points": points, "peak": plain(tracker.get_tracker_snapshot("peak")), "modules": modules}
    found |= {"highest": tracker.highest, "highest_of": tracker.highest_of}
    settle()
    del training, tracker, inputs, targets
    while gc.collect():
        pass
    return found


if __name__ == "__main__":
    answer_cases(run)
