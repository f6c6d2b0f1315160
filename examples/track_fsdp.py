"""Where FSDP2's memory goes, at each of its stages: the drop-in tracker, as one rank of many.

plimsoll run --quiet --world-size 16 examples/track_fsdp.py
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from plimsoll import FSDPMemTracker  # was: torch.distributed._tools.fsdp2_mem_tracker

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
with torch.device("cuda"):
    model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(4)])
    batch = torch.randn(1024, 4096)
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())

tracker = FSDPMemTracker(model, optimizer)
tracker.track_inputs((batch,))
with tracker:
    for _ in range(2):  # torch's stops at the second
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
tracker.display_snapshot("peak", units="MiB")
print(tracker.explain())
dist.destroy_process_group()
