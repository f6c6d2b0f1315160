"""DistributedDataParallel: every rank holds the whole model, gradients are averaged in buckets.

torchrun --nproc-per-node 8 train_ddp.py
"""

import argparse
import os
from dataclasses import replace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama import PRESETS, Llama
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="tiny", choices=PRESETS)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--gradients-in-buckets", action="store_true", help="no second copy of the gradients")
    args = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = Llama(replace(PRESETS[args.model], layers=args.layers), positions=args.seq_len).to(device)
    ddp = DistributedDataParallel(
        model,
        device_ids=[device.index],
        bucket_cap_mb=args.bucket_mb,
        gradient_as_bucket_view=args.gradients_in_buckets,
    )
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-4)
    for step in range(args.steps):
        tokens = torch.randint(model.config.vocab, (args.batch, args.seq_len + 1)).to(device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(ddp(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
