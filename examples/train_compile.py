"""torch.compile of a whole model on one GPU."""

import argparse
from dataclasses import replace

import torch
import torch.nn.functional as F
from llama import PRESETS, Llama


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="tiny", choices=PRESETS)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--eager", action="store_true", help="the same without torch.compile")
    args = parser.parse_args()

    with torch.device("cuda"):
        model = Llama(replace(PRESETS[args.model], layers=args.layers), positions=args.seq_len).bfloat16()
        model.frequencies = model._frequencies(args.seq_len)  # bfloat16 has no complex type
    compiled = model if args.eager else torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for step in range(args.steps):
        tokens = torch.randint(model.config.vocab, (args.batch, args.seq_len + 1)).to("cuda")
        logits = compiled(tokens[:, :-1].contiguous())
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
