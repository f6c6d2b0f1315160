"""torch's side of test_fsdp_memory.py: the allocation events of Python FSDP2 on the pretend GPU, as one rank of many.

Cases on standard input, one a line, with words `world` and `rank`; one line of JSON for each on standard output:

    {"phases": [names], "events": [[phase, action, segment, offset, bytes, stream], …], "left": bytes, "pinned": […]}

Segments of the allocator are numbered by first use in the case, and so are streams.
"""

import gc
import json
import os
import sys

import torch
import torch.distributed as dist
from fsdp_training import Case, Training
from torch.testing._internal.distributed.fake_pg import FakeStore

ACTIONS = ("alloc", "free_completed", "segment_alloc", "segment_free")


# Some parts of torch keep the objects of their first use alive.
WARM_UP = ("world=2 rank=0 model=network", "world=2 rank=0 model=gpt")


def start_world(world, rank):
    if dist.is_initialized():
        if (dist.get_world_size(), dist.get_rank()) == (world, rank):
            return
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)


def pinned_bytes():
    """The host allocator's reserved and active bytes."""
    stats = torch._C._cuda_hostMemoryStats()
    return [stats["allocated_bytes"]["current"], stats["active_bytes"]["current"]]


def settle():
    """Runs an empty backward pass: autograd's thread keeps the last graph, and so the model, until the next pass."""
    torch.ones((), device="cuda", requires_grad=True).clone().backward()


def events_of(trace, phases):
    segments, streams, found, phase = [], {}, [], 0
    for entry in trace:
        action, address, size = entry["action"], entry["addr"], entry["size"]
        if action not in ACTIONS:
            continue
        if action == "segment_alloc":
            segments.append((address, address + size))
        index = max(i for i, (first, last) in enumerate(segments) if first <= address < last)
        stream = streams.setdefault(entry["stream"], len(streams))
        if entry["user_metadata"]:
            phase = phases.index(entry["user_metadata"])
        else:  # A thread of autograd: a backward pass that runs or starts.
            phase = next(
                i for i in range(phase, len(phases)) if phases[i].endswith(" backward") or phases[i] == "settle"
            )
        if phases[phase] != "settle":
            found.append([phase, action, index, address - segments[index][0], size, stream])
    return found


def run(case):
    start_world(case.number("world"), case.number("rank"))
    phases, pinned = [], []

    def look(phase):
        phases.append(phase)
        pinned.append(pinned_bytes())
        torch._C._cuda_setMemoryMetadata(phase)

    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.memory.empty_cache()
    torch._C._host_emptyCache()
    torch.cuda.memory._record_memory_history(max_entries=10_000_000, context=None, stacks="python", clear_history=True)
    training = Training(case, "cuda", look)
    training.run(case.number("rank"))
    look("settle")
    settle()
    look("drop")
    del training
    while gc.collect():
        pass
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    torch._C._cuda_clearCublasWorkspaces()
    left = torch.cuda.memory_stats()["allocated_bytes.all.current"]
    return {"phases": phases, "events": events_of(trace, phases), "left": left, "pinned": pinned}


def answer_cases(run, warm_up=()):
    """Calls `run(case)` for each case on standard input, and writes each result as a line of JSON."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Output of torch goes to standard error.
    torch.empty(1, device="cuda")
    for layer in (torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm):
        layer.reset_parameters = lambda self: None  # Initial values take time but no memory.
    for line in warm_up:
        run(Case(line))
    gc.collect()
    gc.freeze()
    gc.disable()  # The collector frees cycles at any time; without it, objects are freed at once by their reference count.
    for line in sys.stdin.read().splitlines():
        output.write(json.dumps(run(Case(line))) + "\n")
        output.flush()


if __name__ == "__main__":
    answer_cases(run, WARM_UP)
