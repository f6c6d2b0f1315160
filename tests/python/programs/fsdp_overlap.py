"""torch's side of test_fsdp_overlap.py: the work of Python FSDP2 on the streams of the pretend GPU, as one rank of many.

Cases on standard input, one a line. For each case, the named folder gets a file for each phase (`INDEX.PHASE`, see
plimsoll_log_work in control_c.h), and standard output a line of JSON with the names of the phases.
"""

import ctypes
import gc
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from fsdp_training import Case, Training

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))
from plimsoll.run.lone_rank.store import LoneStore  # noqa: E402

LOG = ctypes.CDLL("libplimsoll_pretend.so").plimsoll_log_work
LOG.argtypes = [ctypes.c_char_p]


def start_world(world, rank):
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("nccl", store=LoneStore(world), rank=rank, world_size=world)


def run(case, prefix):
    start_world(case.number("world"), case.number("rank"))
    phases = []

    def look(phase):
        LOG(f"{prefix}.{len(phases)}".encode())
        phases.append(phase)

    training = Training(case, "cuda", look)
    training.run(case.number("rank"))
    LOG(None)
    del training
    gc.collect()
    return phases


def main():
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Output of torch goes to standard error.
    folder = sys.argv[1]
    torch.empty(1, device="cuda")
    run(Case("world=2 rank=0 model=network"), f"{folder}/warm_up")
    for index, line in enumerate(sys.stdin.read().splitlines()):
        output.write(json.dumps(run(Case(line), f"{folder}/{index}")) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
