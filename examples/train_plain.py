"""A plain training loop on one GPU: an MLP, mean squared error, SGD or AdamW."""

import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="adamw")
    args = parser.parse_args()

    blocks = [nn.Sequential(nn.Linear(args.width, args.width), nn.ReLU()) for _ in range(args.layers)]
    model = nn.Sequential(*blocks, nn.Linear(args.width, 1)).to("cuda")
    make = torch.optim.SGD if args.optimizer == "sgd" else torch.optim.AdamW
    optimizer = make(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        inputs = torch.randn(args.batch, args.width, device="cuda")
        targets = torch.randn(args.batch, 1, device="cuda")
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
