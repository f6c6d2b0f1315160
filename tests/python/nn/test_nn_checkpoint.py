"""C++ checkpoints have the same allocation events as torch.utils.checkpoint on the pretend GPU.

Run as a program, this file is torch's side: it reads the kinds of checkpoints from standard input as
nn_checkpoint_trace does, and prints the same lines.
"""

import functools
import importlib.util as util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import needs
import pytest

HOME = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
PROGRAM = BUILD / "tests" / "programs" / "nn_checkpoint_trace"

CHECKPOINTS = ["none", "plain", "plain whole", "nested", "nested whole", "products", "products whole", "second"]
CHECKPOINTS += ["plain retained", "nested retained", "nested second", "none retained"]
EXTRAS = ["", " dropout", " autocast", " dropout autocast"]
KINDS = [kind + extra for kind in CHECKPOINTS for extra in EXTRAS]


def torchs_side():
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    batch, tokens, dim, heads, layers = 2, 128, 256, 4, 3
    plain = functools.partial(checkpoint, use_reentrant=False)

    class Attention(nn.Module):
        def __init__(self, dropout):
            super().__init__()
            self.p = dropout
            self.norm = nn.LayerNorm(dim)
            self.qkv = nn.Linear(dim, 3 * dim)
            self.out = nn.Linear(dim, dim)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x):
            h = self.norm(x)
            h = self.qkv(h)
            h = h.view(batch, tokens, 3, heads, dim // heads)
            h = h.permute(2, 0, 3, 1, 4)
            q = h[0]
            k = h[1]
            v = h[2]
            h = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
            h = h.transpose(1, 2)
            h = h.reshape(batch, tokens, dim)
            h = self.out(h)
            h = self.dropout(h)
            return x + h

    class FeedForward(nn.Module):
        def __init__(self, dropout):
            super().__init__()
            self.norm = nn.LayerNorm(dim)
            self.up = nn.Linear(dim, 4 * dim)
            self.down = nn.Linear(4 * dim, dim)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x):
            h = self.norm(x)
            h = self.up(h)
            h = F.gelu(h)
            h = self.down(h)
            h = self.dropout(h)
            return x + h

    class Block(nn.Module):
        def __init__(self, dropout, nested):
            super().__init__()
            self.attention = Attention(dropout)
            self.feed_forward = FeedForward(dropout)
            self.nested = nested

        def forward(self, x):
            if self.nested:
                h = plain(self.attention, x)
                return plain(self.feed_forward, h)
            h = self.attention(x)
            return self.feed_forward(h)

    aten = torch.ops.aten
    attention = [
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_efficient_attention.default,
        aten._scaled_dot_product_cudnn_attention.default,
    ]

    def every_second_product():
        products = itertools.count()

        def policy(context, op, *args, **kwargs):
            save = op in attention or (op in (aten.mm.default, aten.addmm.default) and next(products) % 2 == 0)
            return CheckpointPolicy.MUST_SAVE if save else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    def train(kind):
        words = kind.split()
        options = {"early_stop": "whole" not in words}
        if "products" in words:
            products = [aten.addmm.default, aten.mm.default]
            options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, products)
        if "second" in words:
            options["context_fn"] = every_second_product

        with torch.device("cuda"):
            blocks = [Block(0.1 if "dropout" in words else 0.0, "nested" in words) for _ in range(layers)]

            def step():
                x = torch.randn(batch, tokens, dim)
                with torch.autocast("cuda", torch.bfloat16, enabled="autocast" in words):
                    for block in blocks:
                        x = block(x) if "none" in words else plain(block, x, **options)
                loss = x.sum()
                x = None
                if "retained" in words:
                    loss.backward(retain_graph=True)
                loss.backward()

            for _ in range(2):
                step()

    torch.zeros(1, device="cuda")
    for kind in sys.stdin.read().splitlines():
        torch.cuda.memory._record_memory_history(context=None, max_entries=10**6, clear_history=True)
        train(kind)
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        trace = [event for event in trace if event["action"] in ("alloc", "free_completed")]
        print(json.dumps([[event["action"], event["addr"], event["size"]] for event in trace]))


def why_not():
    found = util.find_spec("torch")
    if found is None or found.origin is None:
        return "torch is not installed"
    if not (Path(found.origin).parent / "lib" / "libtorch_cuda.so").exists():
        return "torch is not a CUDA build"
    return None if PROGRAM.exists() else f"{PROGRAM.name} is not built"


if __name__ != "__main__":
    pytestmark = [pytest.mark.recorded, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def events_of(command, env=None):
    env = {**os.environ, **(env or {})}
    kinds = "\n".join(KINDS) + "\n"
    done = subprocess.run(command, input=kinds, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(KINDS)
    return {kind: comparable(json.loads(line)) for kind, line in zip(KINDS, lines)}


def comparable(events):
    """Sorts frees that have no allocation between them: C++ destroys the variables of a function last to first, Python first
    to last, with the same result. Addresses are relative to the first."""
    first = events[0][1]
    result = []
    for is_free, group in itertools.groupby(events, lambda event: event[0] == "free_completed"):
        group = [(action, address - first, size) for action, address, size in group]
        result += sorted(group) if is_free else group
    return result


@pytest.fixture(scope="module")
def both():
    preload = ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*")))
    return events_of([PROGRAM]), events_of(needs.python(__file__), {"LD_PRELOAD": preload})


def differences(ours, theirs, around=3):
    index = next(i for i, (a, b) in enumerate(itertools.zip_longest(ours, theirs)) if a != b)
    rows = itertools.zip_longest(ours[max(0, index - around) : index + 8], theirs[max(0, index - around) : index + 8])
    return [f"{max(0, index - around) + i:5} {one!s:45} {other!s:45}" for i, (one, other) in enumerate(rows)]


@pytest.mark.parametrize("kind", KINDS)
def test_allocation_events_equal_torchs(both, kind):
    ours, theirs = (side[kind] for side in both)
    if ours != theirs:
        pytest.fail("\n".join(["      ours, torch's", *differences(ours, theirs)]))


def test_the_kinds_of_checkpoints_differ_in_their_allocations(both):
    """Without this, the equality above could hold for empty output."""
    ours, _ = both
    assert len({json.dumps(ours[kind]) for kind in CHECKPOINTS}) == len(CHECKPOINTS)
    assert all(len(ours[kind]) > 300 for kind in KINDS)


if __name__ == "__main__":
    torchs_side()
