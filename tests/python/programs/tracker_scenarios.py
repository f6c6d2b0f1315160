"""The oracle of test_cpp_tracker_against_torch.py: torch's MemTracker around the training steps of tests/tracker/models.h.

Cases on standard input, one a line ("MODEL OPTIMIZER DEVICE"); the tracker's reports as JSON on standard output.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils.checkpoint import checkpoint


class MLP(nn.Module):
    def __init__(self, inner, hidden, outer):
        super().__init__()
        self.fc1 = nn.Linear(inner, hidden)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(hidden, outer)

    def forward(self, x):
        x = self.fc1(x)
        x = self.act(x)
        x = self.fc2(x)
        return x


class Twice(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.shared = nn.Linear(dim, dim)
        self.last = nn.Linear(dim, dim)

    def forward(self, x):
        x = self.shared(x)
        x = torch.relu(x)
        x = self.shared(x)
        x = self.last(x)
        return x


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 24, 3, padding=1)
        self.norm = nn.BatchNorm2d(24)
        self.act = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(96, 10)

    def forward(self, x):
        x = self.conv(x)
        x = self.norm(x)
        x = self.act(x)
        x = self.pool(x)
        x = torch.flatten(x, 1)
        x = self.head(x)
        return x


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq = nn.Linear(dim, dim)
        self.wk = nn.Linear(dim, dim)
        self.wv = nn.Linear(dim, dim)
        self.wo = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q = self.wq(x)
        q = q.view(b, t, self.heads, d // self.heads).transpose(1, 2)
        k = self.wk(x)
        k = k.view(b, t, self.heads, d // self.heads).transpose(1, 2)
        v = self.wv(x)
        v = v.view(b, t, self.heads, d // self.heads).transpose(1, 2)
        s = torch.matmul(q, k.transpose(-2, -1))
        s = s / math.sqrt(d // self.heads)
        s = torch.softmax(s, -1)
        y = torch.matmul(s, v)
        y = y.transpose(1, 2).reshape(b, t, d)
        y = self.wo(y)
        return y


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim, 4 * dim, dim)

    def forward(self, x):
        h = self.ln1(x)
        h = self.attn(h)
        x = x + h
        h = self.ln2(x)
        h = self.mlp(h)
        x = x + h
        return x


class Transformer(nn.Module):
    def __init__(self, checkpointed=False, tied=False, vocabulary=120, dim=48, heads=4, layers=3):
        super().__init__()
        self.checkpointed = checkpointed
        self.embed = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.layers:
            if self.checkpointed:
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        x = self.norm(x)
        x = self.head(x)
        return x


def model_and_batch(name):
    tokens = torch.arange(2 * 20).view(2, 20)
    if name == "mlp":
        return MLP(40, 300, 30), torch.ones(16, 40)
    if name == "twice":
        return Twice(70), torch.ones(9, 70)
    if name == "conv":
        return ConvNet(), torch.ones(4, 3, 16, 16)
    return Transformer(name == "transformer_checkpointed", name == "transformer_tied"), tokens


def optimizer_of(name, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    return torch.optim.AdamW(parameters, foreach=name == "adamw_foreach", fused=name == "adamw_fused")


def plain(snapshot):
    return {
        str(device): {getattr(key, "value", key): bytes for key, bytes in books.items()}
        for device, books in snapshot.items()
    }


def run(model_name, optimizer_name, device):
    torch.manual_seed(0)
    model, batch = model_and_batch(model_name)
    model.to(device)
    batch = batch.to(device)
    optimizer = optimizer_of(optimizer_name, model.parameters())
    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    points = {}

    def look(point):
        points[point] = plain(tracker.get_tracker_snapshot("current"))

    def pass_through():
        output = model(batch)
        loss = output.square().mean()
        look("forward")
        loss.backward()
        look("backward")

    with tracker:
        look("before")
        pass_through()
        look("loss dropped")
        optimizer.step()
        look("step")
        optimizer.zero_grad()
        look("zero_grad")
    modules = {}
    for stats in tracker.memory_tracking.values():
        modules[stats.mod_fqn] = {
            "parameter": stats.parameter_mem,
            "buffer": stats.buffer_mem,
            "input": stats.input_mem,
            "output": stats.output_mem,
            "states": {state.value: [plain(snapshot) for snapshot in all] for state, all in stats.snapshots.items()},
        }
    return {"points": points, "peak": plain(tracker.get_tracker_snapshot("peak")), "modules": modules}


def main():
    cases = [line.split() for line in sys.stdin if line.strip()]
    print(json.dumps({" ".join(case): run(*case) for case in cases}))


if __name__ == "__main__":
    main()
