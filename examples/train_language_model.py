"""Trains a language model from its config.json as torchtitan does: the job that `plimsoll plan` runs, with its flags.

    torchrun --nproc-per-node 8 train_language_model.py config.json --batch 2 --seq-len 8192 --checkpoint selective

On more than one GPU, or with parameters on the CPU, the model is built on meta, with FSDP2 by block and bf16 with fp32
reduction. On one GPU it is built there and runs under autocast.
"""

import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from checkpointing import Checkpointed
from language_model import LanguageModel, read_config
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import Shard

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
MODES = {"full": "full", "selective": "op"}


def boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a model's config.json")
    parser.add_argument("--replicas", type=int, default=1, help="copies of the sharded model (HSDP)")
    parser.add_argument("--batch", type=int, default=1, help="sequences for each rank")
    parser.add_argument("--seq-len", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--grad-accum", type=int, default=1, help="backwards for each step")
    parser.add_argument("--accum-no-sync", action="store_true", help="reduce gradients in the last of them only")
    parser.add_argument("--param-dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--reduce-dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--master-dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--reshard-after-forward", default="auto", help="auto, always, never, or over how many ranks")
    parser.add_argument("--keep-last-block", type=boolean, default=True)
    parser.add_argument("--wrap", default="blocks", help="blocks, blocks:K or root")
    parser.add_argument("--checkpoint", default="none", help="none, full, selective or every:K")
    parser.add_argument("--optimizer", choices=["adamw", "adam", "sgd"], default="adamw")
    parser.add_argument("--optimizer-impl", choices=["foreach", "fused", "forloop"], default="foreach")
    parser.add_argument("--offload", choices=["none", "params"], default="none")
    parser.add_argument("--clip-grad-norm", default="1.0", help="a norm, or none")
    parser.add_argument("--loss-fp32", type=boolean, default=True)
    parser.add_argument("--keep-logits", action="store_true", help="until the next ones, not only until the loss")
    parser.add_argument("--norm", choices=["composite", "fused"], default="composite")
    return parser.parse_args()


def checkpoint(model: LanguageModel, policy: str) -> None:
    kind, every = ("full", int(policy[6:])) if policy.startswith("every:") else (policy, 1)
    if kind != "none":
        for i in range(every - 1, len(model.layers), every):
            model.layers[i] = Checkpointed(model.layers[i], MODES[kind])


def placement(model: LanguageModel, shards: int):
    """Shards along the width if there are fewer experts than ranks."""
    experts = model.config.experts
    if experts is None or shards <= experts.count:
        return None
    return lambda parameter: Shard(1) if parameter.dim() == 3 else Shard(0)


def shard(model: LanguageModel, args: argparse.Namespace, world_size: int) -> None:
    if args.replicas > 1:
        shape = (args.replicas, world_size // args.replicas)
        mesh = init_device_mesh("cuda", shape, mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cuda", (world_size,))
    options = {
        "mesh": mesh,
        "mp_policy": MixedPrecisionPolicy(DTYPES[args.param_dtype], DTYPES[args.reduce_dtype]),
        "offload_policy": CPUOffloadPolicy() if args.offload == "params" else OffloadPolicy(),
        "shard_placement_fn": placement(model, world_size // args.replicas),
    }
    reshard = {"auto": True, "always": True, "never": False}.get(args.reshard_after_forward)
    if reshard is None:
        reshard = int(args.reshard_after_forward)
    group = {"blocks": 1, "root": 0}.get(args.wrap)
    if group is None:
        group = int(args.wrap.removeprefix("blocks:"))
    layers = list(model.layers)
    for first in range(0, len(layers), group) if group else []:
        unit = layers[first : first + group]
        # Backward needs the last block first and would gather it again at once.
        kept = args.keep_last_block and first + group >= len(layers)
        fully_shard(unit if group > 1 else unit[0], reshard_after_forward=False if kept else reshard, **options)
    root = {"auto": None, "always": True, "never": False}.get(args.reshard_after_forward, None if group else reshard)
    fully_shard(model, reshard_after_forward=root, **options)


def build(args: argparse.Namespace, device: torch.device, world_size: int, sharded: bool) -> LanguageModel:
    config = read_config(args.config)
    config.norm = args.norm
    torch.set_default_dtype(DTYPES[args.master_dtype])
    with torch.device("meta" if sharded else device):
        model = LanguageModel(config, args.seq_len, args.loss_fp32)
    torch.set_default_dtype(torch.float32)
    checkpoint(model, args.checkpoint)
    if sharded:
        shard(model, args, world_size)
        model.to_empty(device="cpu" if args.offload == "params" else device)
        if args.offload == "params":
            for name, buffer in model.named_buffers():
                model.get_submodule(name.rpartition(".")[0]).register_buffer(name.rpartition(".")[2], buffer.to(device))
    model.init_weights()
    return model


def make_optimizer(args: argparse.Namespace, model: LanguageModel) -> torch.optim.Optimizer:
    form = {"foreach": {"foreach": True}, "fused": {"fused": True}, "forloop": {"foreach": False}}[args.optimizer_impl]
    parameters = model.parameters()
    if args.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=3e-4, momentum=0.9, **form)
    kind = torch.optim.AdamW if args.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, **form)


def main() -> None:
    args = parse()
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    torch.backends.cuda.enable_cudnn_sdp(False)
    sharded = world_size > 1 or args.offload == "params"
    if sharded:
        dist.init_process_group("cpu:gloo,cuda:nccl" if args.offload == "params" else "nccl", device_id=device)
    model = build(args, device, world_size, sharded)
    optimizer = make_optimizer(args, model)
    autocast = contextlib.nullcontext()
    if not sharded and args.param_dtype != args.master_dtype:
        autocast = torch.autocast("cuda", dtype=DTYPES[args.param_dtype])
    vocabulary = model.config.vocabulary
    for step in range(args.steps):
        optimizer.zero_grad()
        for micro in range(args.grad_accum):
            if args.accum_no_sync and sharded:
                model.set_requires_gradient_sync(micro == args.grad_accum - 1)
            tokens = torch.randint(vocabulary, (args.batch, args.seq_len)).to(device)
            targets = torch.randint(vocabulary, (args.batch, args.seq_len)).to(device)
            with autocast:
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            if not args.keep_logits:
                del logits
            if args.grad_accum > 1:
                loss.backward(torch.full_like(loss, 1.0 / args.grad_accum))
            else:
                loss.backward()
        if args.clip_grad_norm != "none":
            foreach = args.optimizer_impl != "forloop"
            torch.nn.utils.clip_grad_norm_(model.parameters(), float(args.clip_grad_norm), foreach=foreach)
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
    if sharded:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
