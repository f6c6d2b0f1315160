"""The steps of a plan (examples/language_model.py with torchtitan's conventions) under torch's FSDPMemTracker with
FakeTensorMode, as JSON: the seconds of each step.

    torch_plan.py CONFIG.json WORLD_SIZE SEQUENCE STEPS OUT.json
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from language_model import LanguageModel, read_config
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore


def main() -> None:
    config, world_size, sequence, steps, out = sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5])
    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    torch.backends.cuda.enable_cudnn_sdp(False)
    mesh = init_device_mesh("cuda", (world_size,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    with FakeTensorMode():
        with torch.device("meta"):
            model = LanguageModel(read_config(config), sequence)
        last = len(model.layers) - 1
        for i, layer in enumerate(model.layers):
            fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=i < last)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        model.to_empty(device="cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
        tracker = FSDPMemTracker(model, optimizer)
        seconds = []
        with tracker:
            for _ in range(steps):
                began = time.perf_counter()
                optimizer.zero_grad()
                tokens = torch.empty(1, sequence, dtype=torch.long, device="cuda")
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
                del logits
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
                optimizer.step()
                seconds.append(time.perf_counter() - began)
                tracker.reset_mod_stats()  # The tracker keeps one step at a time.
    out.write_text(json.dumps({"steps": seconds}))


if __name__ == "__main__":
    main()
