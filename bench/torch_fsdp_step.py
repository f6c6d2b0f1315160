"""The seconds of training steps under torch's FSDP2, as JSON: the counterpart of bench/torch/fsdp_step.cpp.

torch_fsdp_step.py blocks WORLD_SIZE STEPS COUNT OUT.json
torch_fsdp_step.py gloo STEPS CONFIGURATION OUT.json          one of torchrun's ranks
"""

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

HOME = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOME / "tests" / "python")]


def seconds_of(steps, step):
    for _ in range(3):
        step()
    seconds = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    return seconds


def row_of_blocks(world_size, steps, count, shards):
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(count))).cuda()
    if shards:
        mesh = init_device_mesh("cuda", (world_size,))
        for block in model:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    inputs = torch.empty(4, 16, device="cuda")

    def step():
        model(inputs).sum().backward()
        for parameter in model.parameters():
            parameter.grad = None

    return seconds_of(steps, step)


def blocks(world_size, steps, count):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    return {
        "plain": row_of_blocks(world_size, steps, count, shards=False),
        "sharded": row_of_blocks(world_size, steps, count, shards=True),
    }


def gloo(steps, configuration):
    from tracker_scenarios import Transformer

    dist.init_process_group("gloo")
    assert dist.get_world_size() == 2
    torch.set_num_threads(1)
    model = Transformer(vocabulary=512, dim=128, heads=4, layers=4)
    options = {"mesh": init_device_mesh("cpu", (dist.get_world_size(),))}
    if configuration == "bf16":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if configuration == "keep":
        options["reshard_after_forward"] = False
    if configuration == "offload":
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    tokens = torch.arange(2 * 32).view(2, 32)
    micros = 2 if configuration == "no_sync" else 1

    def step():
        for micro in range(micros):
            model.set_requires_gradient_sync(micro == micros - 1)
            model(tokens).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return {"steps": seconds_of(steps, step)}


def main():
    *words, out = sys.argv[1:]
    if words[0] == "blocks":
        result = blocks(*map(int, words[1:]))
    else:
        result = gloo(int(words[1]), words[2])
    if dist.get_rank() == 0:
        Path(out).write_text(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
