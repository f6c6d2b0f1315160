"""The models of trackers_upstream_cases.py, with the sizes of torch's own tests of its trackers."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def stack(layers, dim, dtype):
    return nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(dim, dim, dtype=dtype), nn.ReLU())))


def wide_and_narrow(layers, dim, dtype):
    pairs = [(dim, 2 * dim), (2 * dim, dim)] * layers
    return nn.Sequential(*(part for pair in pairs for part in (nn.Linear(*pair, dtype=dtype), nn.GELU())))


class Widening(nn.Module):
    """dim -> times * dim -> dim."""

    def __init__(self, dim, times, dtype=None):
        super().__init__()
        self.up = nn.Linear(dim, times * dim, dtype=dtype)
        self.down = nn.Linear(times * dim, dim, dtype=dtype)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


class Checkpointed(nn.Module):
    """Each block except the first is recomputed in backward."""

    def __init__(self, layers, dim, dtype, reentrant):
        super().__init__()
        self.blocks = nn.ModuleList(Widening(dim, 2, dtype) for _ in range(layers))
        self.reentrant = reentrant

    def forward(self, x):
        x = self.blocks[0](x)
        for block in self.blocks[1:]:
            x = checkpoint(block, x, use_reentrant=self.reentrant, preserve_rng_state=True)
        return x


class Attention(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.inward = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.outward = nn.Linear(dim, dim, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (linear(x).view(batch, length, self.heads, -1).transpose(1, 2) for linear in self.inward)
        seen = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        return self.drop(self.outward(seen.transpose(1, 2).reshape(batch, length, dim)))


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2))
        self.attention = Attention(dim, heads, dropout)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class TiedTransformer(nn.Module):
    """Dropout, learnt positions, and a head that shares the embedding."""

    def __init__(self, vocabulary=8192, length=512, layers=4, dim=16, heads=4, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim)
        self.positions = nn.Embedding(length, dim)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.embedding(tokens) + self.positions(places))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).float()
