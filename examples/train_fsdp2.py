"""FSDP2 (fully_shard): parameters, gradients and optimizer state shared among the ranks.

torchrun --nproc-per-node 8 train_fsdp2.py --checkpoint full --hsdp 2 --accumulate 4 --no-sync
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
    parser.add_argument("--checkpoint", choices=["none", "full"], default="none")
    parser.add_argument("--hsdp", type=int, default=1, metavar="REPLICAS", help="copies of the sharded model")
    parser.add_argument("--accumulate", type=int, default=1, metavar="N", help="backwards for each step")
    parser.add_argument("--no-sync", action="store_true", help="reduce gradients in the last of them only")
    args = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    world_size = dist.get_world_size()
    if world_size % args.hsdp:
        parser.error(f"--hsdp {args.hsdp} does not divide the {world_size} ranks")
    if args.hsdp > 1:
        mesh = init_device_mesh("cuda", (args.hsdp, world_size // args.hsdp), mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cuda", (world_size,))

    torch.manual_seed(0)
    with torch.device("meta"):
        model = Llama(replace(PRESETS[args.model], layers=args.layers), positions=args.seq_len)
    checkpoint_layers(model.layers, args.checkpoint)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    model.init_weights()

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(args.steps):
        for i in range(args.accumulate):
            if args.no_sync:
                model.set_requires_gradient_sync(i == args.accumulate - 1)
            tokens = torch.randint(model.config.vocab, (args.batch, args.seq_len + 1)).to(device)
            loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
            (loss / args.accumulate).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    local = sum(p.to_local().numel() * p.element_size() for p in model.parameters())
    print(f"rank {dist.get_rank()}: {local} bytes of parameters")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
