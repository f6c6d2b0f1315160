"""Trains a Llama the way torchtitan does: meta init, FSDP2 by block, bf16 with fp32 reduction, AdamW, clipping.

torchrun --nproc-per-node 8 train_llama.py llama3-8b --batch 2 --seq-len 8192 --ac op
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


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="tiny", choices=PRESETS)
    parser.add_argument("--batch", type=int, default=1, help="sequences for each rank")
    parser.add_argument("--seq-len", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, help="fewer or more than the preset has")
    parser.add_argument("--ac", choices=["none", "full", "op"], default="none", help="activation checkpointing")
    parser.add_argument("--norm", choices=["fp32", "fused"], default="fp32")
    parser.add_argument("--optimizer", choices=["foreach", "fused"], default="foreach")
    parser.add_argument("--keep-logits", action="store_true", help="until the next step, not only until the loss")
    parser.add_argument("--no-reshard", action="store_true", help="keep every block whole from forward to backward")
    parser.add_argument("--compile", action="store_true", help="each block")
    parser.add_argument("--any-attention", action="store_true", help="let torch choose cuDNN's attention as well")
    return parser.parse_args()


def shard(model: Llama, mesh, reshard: bool) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    last = len(model.layers) - 1
    for i, layer in enumerate(model.layers):
        # Backward needs the last block first and would gather it again at once.
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard and i < last)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def build(args: argparse.Namespace, device: torch.device, world_size: int) -> Llama:
    config = replace(PRESETS[args.model], norm=args.norm)
    if args.layers is not None:
        config = replace(config, layers=args.layers)
    with torch.device("meta"):
        model = Llama(config, positions=2 * args.seq_len)
    checkpoint_layers(model.layers, args.ac)
    if args.compile:
        for layer in model.layers:
            layer.compile(fullgraph=True)
    if world_size > 1:
        shard(model, init_device_mesh("cuda", (world_size,)), reshard=not args.no_reshard)
    model.to_empty(device=device)
    model.init_weights()
    return model


def main() -> None:
    args = parse()
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    if world_size > 1:
        dist.init_process_group("nccl", device_id=device)
    if not args.any_attention:
        torch.backends.cuda.enable_cudnn_sdp(False)

    model = build(args, device, world_size)
    options = {args.optimizer: True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, **options)
    for step in range(args.steps):
        optimizer.zero_grad()
        tokens = torch.randint(model.config.vocab, (args.batch, args.seq_len)).to(device)
        targets = torch.randint(model.config.vocab, (args.batch, args.seq_len)).to(device)
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if not args.keep_logits:
            del logits
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        stats = torch.cuda.memory_stats()
        active, reserved = (stats[f"{book}_bytes.all.peak"] / 2**30 for book in ("active", "reserved"))
        print(f"step {step}: loss {loss.item():.4f}, peak {active:.2f} GiB active, {reserved:.2f} GiB reserved")
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
