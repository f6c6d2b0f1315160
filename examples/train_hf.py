"""A Hugging Face transformers model from its config, no download: Llama, GPT-2 or Qwen2, small by default.

python train_hf.py qwen2
torchrun --nproc-per-node 8 train_hf.py llama      # sharded with FSDP2
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist

try:
    import transformers
except ImportError:
    sys.exit("train_hf.py needs the transformers package: pip install transformers")

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # torch 2.5
    from torch.distributed._composable.fsdp import fully_shard


def make_config(args: argparse.Namespace) -> "transformers.PretrainedConfig":
    heads = max(1, args.width // 64)
    if args.model == "gpt2":
        return transformers.GPT2Config(
            n_embd=args.width, n_layer=args.layers, n_head=heads, vocab_size=args.vocab, n_positions=args.seq_len
        )
    config = transformers.LlamaConfig if args.model == "llama" else transformers.Qwen2Config
    return config(
        hidden_size=args.width,
        intermediate_size=4 * args.width,
        num_hidden_layers=args.layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        vocab_size=args.vocab,
        max_position_embeddings=args.seq_len,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="llama", choices=["llama", "gpt2", "qwen2"])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()

    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    model = transformers.AutoModelForCausalLM.from_config(make_config(args)).to(device)
    model.train()
    if ranks > 1:
        dist.init_process_group("nccl", device_id=device)
        for block in model.transformer.h if args.model == "gpt2" else model.model.layers:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(args.steps):
        tokens = torch.randint(args.vocab, (args.batch, args.seq_len)).to(device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    shards = [p.to_local() if ranks > 1 else p for p in model.parameters()]
    print(f"rank {rank}: {sum(shard.numel() * shard.element_size() for shard in shards)} bytes of parameters")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
