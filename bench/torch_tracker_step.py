"""The cost of torch's own MemTracker: seconds of training steps as JSON.

torch_tracker_step.py cpu STEPS OUT.json      the transformer of bench/torch/tracked_step.cpp, plain and tracked, alternating
torch_tracker_step.py fake STEPS OUT.json     Llama-3-8B's shape under FakeTensorMode, tracked
"""

import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

HOME = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOME / "tests" / "python"), str(HOME / "examples")]


def timed(step) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def tracked(model, optimizer, step) -> float:
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        step()
        tracker.reset_mod_stats()  # The tracker keeps one step at a time.
        return timed(step)


def cpu(steps: int):
    from tracker_scenarios import Transformer

    model = Transformer(vocabulary=1000, dim=512, heads=8, layers=8)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    tokens = torch.arange(4 * 64).view(4, 64)

    def step():
        model(tokens).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step(), step()
    result = {"plain": [], "tracked": []}
    for _ in range(steps):
        result["plain"].append(timed(step))
        result["tracked"].append(tracked(model, optimizer, step))
    return result


def fake(steps: int):
    from llama import PRESETS, Llama

    torch.set_default_dtype(torch.bfloat16)
    with FakeTensorMode(), torch.device("cuda"):
        model = Llama(PRESETS["llama3-8b"], positions=8192)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        tokens = torch.empty(1, 8192, dtype=torch.long)

        def step():
            F.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()

        return {"tracked": [tracked(model, optimizer, step) for _ in range(steps)]}


if __name__ == "__main__":
    mode, count, out = sys.argv[1:]
    Path(out).write_text(json.dumps({"cpu": cpu, "fake": fake}[mode](int(count))))
