"""A small training, for tests of the trackers."""

import torch
from torch import nn


def mlp(device="cpu", width=64):
    model = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)).to(device)
    return model, torch.optim.AdamW(model.parameters()), torch.ones(8, width, device=device)


def step(model, optimizer, batch):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def total(tracker, device="cpu", type="peak"):
    return tracker.get_tracker_snapshot(type)[torch.device(device)]["Total"]
