"""torch.compile of each block, under FSDP2.

torchrun --nproc-per-node 8 train_compile_fsdp2.py
"""

import argparse
import os
from dataclasses import replace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from checkpointing import checkpoint_layers
from llama import PRESETS, Llama
from torch.distributed.device_mesh import init_device_mesh

try:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:  # torch 2.5
    from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="tiny", choices=PRESETS)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--eager", action="store_true", help="the same without torch.compile")
    parser.add_argument("--checkpoint", choices=["none", "full", "op"], default="none")
    args = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))

    torch.manual_seed(0)
    with torch.device("meta"):
        model = Llama(replace(PRESETS[args.model], layers=args.layers), positions=args.seq_len)
    checkpoint_layers(model.layers, args.checkpoint)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        if not args.eager:
            layer.compile(fullgraph=True)  # the blocks are identical: one compilation serves all of them
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    model.init_weights()

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(args.steps):
        tokens = torch.randint(model.config.vocab, (args.batch, args.seq_len + 1)).to(device)
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
