"""torch's side of test_fsdp_memory.py: what Python FSDP2 takes and gives back on the pretend GPU, as one rank of many.

Cases on standard input, one a line, with words `world` and `rank`; one line of JSON for each on standard output:

    {"phases": [names], "events": [[phase, action, segment, offset, bytes, stream], …], "left": bytes, "pinned": […]}

A segment is the allocator's, counted from the first that the case took; streams count from the first that is used.
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


# The first use of some things in torch keeps what it saw alive.
WARM_UP = ("world=2 rank=0 model=network", "world=2 rank=0 model=gpt")


def start_world(world, rank):
    if dist.is_initialized():
        if (dist.get_world_size(), dist.get_rank()) == (world, rank):
            return
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)


def pinned_bytes():
    """Of the host allocator: in its hands, and given out."""
    stats = torch._C._cuda_hostMemoryStats()
    return [stats["allocated_bytes"]["current"], stats["active_bytes"]["current"]]


def settle():
    """A backward pass of nothing: autograd's thread holds the last one's graph, and with it the model, until the next."""
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
        else:  # A thread of autograd's: the backward pass that is under way, or begins.
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
    """`run(case)` for each case on standard input; what it gives is written as a line of JSON."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What torch prints goes with the messages.
    torch.empty(1, device="cuda")
    for layer in (torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm):
        layer.reset_parameters = lambda self: None  # Their first values take time, and no memory.
    for line in warm_up:
        run(Case(line))
    gc.collect()
    gc.freeze()
    gc.disable()  # Python frees cycles when it likes; what is in none goes at once.
    for line in sys.stdin.read().splitlines():
        output.write(json.dumps(run(Case(line))) + "\n")
        output.flush()


if __name__ == "__main__":
    answer_cases(run, WARM_UP)
