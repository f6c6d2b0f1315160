"""Tensor parallel inside a node, FSDP2 between nodes: a 2-D mesh of DTensors.

torchrun --nproc-per-node 8 train_tp_fsdp2.py --tp 4
"""

import argparse
import os
from dataclasses import replace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama import PRESETS, Llama
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

try:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:  # torch 2.5
    from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard

# Each pair of matmuls is split by columns, then by rows, so the pair needs only one all-reduce.
BLOCK_PLAN = {
    "attention.wq": ColwiseParallel(),
    "attention.wk": ColwiseParallel(),
    "attention.wv": ColwiseParallel(),
    "attention.wo": RowwiseParallel(),
    "feed_forward.w1": ColwiseParallel(),
    "feed_forward.w3": ColwiseParallel(),
    "feed_forward.w2": RowwiseParallel(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="tiny", choices=PRESETS)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tp", type=int, default=2, help="ranks that share each matmul")
    args = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    world_size = dist.get_world_size()
    config = replace(PRESETS[args.model], layers=args.layers)
    if world_size % args.tp or config.kv_heads % args.tp:
        parser.error(f"--tp {args.tp} must divide the {world_size} ranks and the {config.kv_heads} key-value heads")
    mesh = init_device_mesh("cuda", (world_size // args.tp, args.tp), mesh_dim_names=("dp", "tp"))

    torch.manual_seed(0)
    with torch.device("meta"):
        model = Llama(config, positions=args.seq_len)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        parallelize_module(layer, mesh["tp"], BLOCK_PLAN)
        fully_shard(layer, mesh=mesh["dp"], mp_policy=policy)
    fully_shard(model, mesh=mesh["dp"], mp_policy=policy)
    model.to_empty(device=device)
    model.init_weights()

    # The matmuls are DTensors of both mesh dimensions, the others of one: AdamW needs groups of one kind.
    parameters = list(model.parameters())
    groups = [[p for p in parameters if p.device_mesh.ndim == ndim] for ndim in (2, 1)]
    optimizer = torch.optim.AdamW([{"params": group} for group in groups], lr=3e-4)
    for step in range(args.steps):
        tokens = torch.randint(config.vocab, (args.batch, args.seq_len + 1)).to(device)
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    local = sum(p.to_local().numel() * p.element_size() for p in parameters)
    print(f"rank {dist.get_rank()}: {local} bytes of parameters")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
