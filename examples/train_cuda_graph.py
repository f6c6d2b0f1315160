"""A whole training step captured in a CUDA graph and replayed: static inputs, capturable AdamW."""

import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--replays", type=int, default=3)
    args = parser.parse_args()

    model = nn.Sequential(*(nn.Linear(args.width, args.width) for _ in range(args.layers))).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    inputs = torch.randn(args.batch, args.width, device="cuda")
    targets = torch.randn(args.batch, args.width, device="cuda")

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    # Workspaces and the optimizer's state must exist before the capture.
    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(warm_up)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for replay in range(args.replays):
        inputs.copy_(torch.randn(args.batch, args.width))
        targets.copy_(torch.randn(args.batch, args.width))
        graph.replay()
        print(f"replay {replay}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
