"""Training steps of Llama-3-8B's shape under torch's FSDP2 and FSDPMemTracker, with FakeTensorMode, as JSON: the seconds of
each step and the peak. The same model, statement by statement, as bench/torch/tracked_fsdp_step.cpp's.

    torch_tracked_fsdp_step.py WORLD_SIZE STEPS OUT.json
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python" / "programs"))

import torch
import torch.distributed as dist
from models.fsdp_llama import Llama
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

SEQUENCE = 8192


def main() -> None:
    world_size, steps, out = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    torch.backends.cuda.enable_cudnn_sdp(False)
    mesh = init_device_mesh("cuda", (world_size,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    with FakeTensorMode():
        with torch.device("meta"):
            model = Llama(128256, SEQUENCE, 4096, 14336, 32, 8, 32, checkpointed=True)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        model.to_empty(device="cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
        tokens = torch.empty(1, SEQUENCE, dtype=torch.long, device="cuda")
        tracker = FSDPMemTracker(model, optimizer)
        tracker.track_inputs((tokens,))
        seconds = []
        with tracker:
            for _ in range(steps):
                began = time.perf_counter()
                loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
                loss.backward()
                del loss
                optimizer.step()
                optimizer.zero_grad()
                seconds.append(time.perf_counter() - began)
                tracker.reset_mod_stats()  # The tracker keeps one step at a time.
        peak = {str(device): dict(found) for device, found in tracker.get_tracker_snapshot("peak").items()}
    out.write_text(
        json.dumps(
            {
                "tracked": seconds,
                "peak": {device: {str(k): v for k, v in found.items()} for device, found in peak.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
