"""The model of tests/fsdp/llama.h in Python, statement by statement, so that tensors live and die alike."""

import torch
from models import fsdp_models
from torch import nn
from torch.utils.checkpoint import checkpoint


class RMSNorm(nn.Module):
    """Computes in fp32 for each input type, one operator at a time."""

    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim))

    def forward(self, x):
        y = x.float()
        s = y.pow(2)
        s = s.mean(-1, keepdim=True)
        s = s + 1e-5
        s = torch.rsqrt(s)
        y = y * s
        y = y.to(x.dtype)
        y = y * self.weight
        return y


def rotations(context, head_dim):
    """A complex number for each position and pair of a head's channels."""
    with torch.device("cpu"):  # C++ has no polar on meta.
        speeds = 1.0 / torch.pow(10000.0, torch.arange(0, head_dim, 2).float() / head_dim)
        angles = torch.outer(torch.arange(context).float(), speeds)
        return torch.polar(torch.ones_like(angles), angles)


def rotate(x, freqs):
    b, t, heads, d = x.shape
    c = x.float()
    c = torch.view_as_complex(c.view(b, t, heads, d // 2, 2))
    c = c * freqs.view(1, t, 1, d // 2)
    c = torch.view_as_real(c).flatten(3)
    c = c.to(x.dtype)
    return c


def repeated(x, times):
    """Repeats each head of keys or values for the heads of queries that share it."""
    b, t, heads, d = x.shape
    return x.unsqueeze(3).expand(b, t, heads, times, d).reshape(b, t, heads * times, d)


class GroupedAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim // heads * kv_heads, bias=False)
        self.wv = nn.Linear(dim, dim // heads * kv_heads, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, freqs):
        b, t, d = x.shape
        q = self.wq(x)
        k = self.wk(x)
        v = self.wv(x)
        q = q.view(b, t, self.heads, d // self.heads)
        k = k.view(b, t, self.kv_heads, d // self.heads)
        v = v.view(b, t, self.kv_heads, d // self.heads)
        q = rotate(q, freqs)
        k = rotate(k, freqs)
        k = repeated(k, self.heads // self.kv_heads)
        v = repeated(v, self.heads // self.kv_heads)
        q = q.transpose(1, 2)
        k = k.transpose(1, 2)
        v = v.transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(b, t, d)
        y = self.wo(y)
        return y


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        h = self.w1(x)
        h = nn.functional.silu(h)
        g = self.w3(x)
        h = h * g
        h = self.w2(h)
        return h


class LlamaBlock(nn.Module):
    def __init__(self, dim, hidden, heads, kv_heads):
        super().__init__()
        self.attention_norm = RMSNorm(dim)
        self.attention = GroupedAttention(dim, heads, kv_heads)
        self.ffn_norm = RMSNorm(dim)
        self.feed_forward = SwiGLU(dim, hidden)

    def forward(self, x, freqs):
        h = self.attention_norm(x)
        h = self.attention(h, freqs)
        x = x + h
        h = self.ffn_norm(x)
        h = self.feed_forward(h)
        x = x + h
        return x


class Llama(nn.Module):
    def __init__(self, vocabulary, context, dim, hidden, heads, kv_heads, layers, checkpointed=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.tokens = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList(LlamaBlock(dim, hidden, heads, kv_heads) for _ in range(layers))
        self.norm = RMSNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.register_buffer("freqs", rotations(context, dim // heads))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.layers:
            if self.checkpointed:
                x = checkpoint(block, x, self.freqs, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x, self.freqs)
        x = self.norm(x)
        x = self.head(x)
        return x


class LlamaCase(fsdp_models.TextCase):
    """How the scenarios build, name and feed a Llama."""

    def __init__(self, case):
        super().__init__(case)
        self.dim = case.number("dim", 16)
        self.hidden = case.number("hidden", 24)
        self.heads = case.number("heads", 4)
        self.kv_heads = case.number("kv_heads", 2)
        self.layers = case.number("layers", 3)
        self.checkpointed = case.has("checkpoint")

    def build(self):
        sizes = self.vocabulary, self.context, self.dim, self.hidden, self.heads, self.kv_heads, self.layers
        return Llama(*sizes, self.checkpointed)
