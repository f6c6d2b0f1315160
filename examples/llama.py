"""A Llama in plain PyTorch: RMSNorm, rotary positions in complex fp32, grouped-query attention, SwiGLU."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class LlamaConfig:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    rope_theta: float = 10000.0
    norm: str = "fp32"  # "fp32": made of fp32 operations; "fused": torch's own RMSNorm
    norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


PRESETS = {
    "tiny": LlamaConfig(dim=256, layers=4, heads=8, kv_heads=4, ffn=688, vocab=1024),
    "llama2-7b": LlamaConfig(dim=4096, layers=32, heads=32, kv_heads=32, ffn=11008, vocab=32000),
    "llama3-8b": LlamaConfig(dim=4096, layers=32, heads=32, kv_heads=8, ffn=14336, vocab=128256, rope_theta=5e5),
    "llama3-70b": LlamaConfig(dim=8192, layers=80, heads=64, kv_heads=8, ffn=28672, vocab=128256, rope_theta=5e5),
    "llama3-405b": LlamaConfig(dim=16384, layers=126, heads=128, kv_heads=8, ffn=53248, vocab=128256, rope_theta=5e5),
}


class Fp32RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.normalize(x.float()).type_as(x) * self.weight


def make_norm(config: LlamaConfig) -> nn.Module:
    if config.norm == "fused":
        return nn.RMSNorm(config.dim, eps=config.norm_eps)
    return Fp32RMSNorm(config.dim, config.norm_eps)


def rope_frequencies(head_dim: int, positions: int, theta: float) -> torch.Tensor:
    """One unit complex number for each position and pair of channels."""
    speeds = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(positions).float(), speeds)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(q: torch.Tensor, k: torch.Tensor, frequencies: torch.Tensor) -> "tuple[torch.Tensor, torch.Tensor]":
    q_pairs = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    k_pairs = torch.view_as_complex(k.float().reshape(*k.shape[:-1], -1, 2))
    length = q_pairs.shape[1]
    frequencies = frequencies[:length].view(1, length, 1, q_pairs.shape[-1])
    q_rotated = torch.view_as_real(q_pairs * frequencies).flatten(3)
    k_rotated = torch.view_as_real(k_pairs * frequencies).flatten(3)
    return q_rotated.type_as(q), k_rotated.type_as(k)


def repeat_kv(x: torch.Tensor, times: int) -> torch.Tensor:
    if times == 1:
        return x
    batch, length, heads, head_dim = x.shape
    return x[:, :, :, None, :].expand(batch, length, heads, times, head_dim).reshape(batch, length, -1, head_dim)


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.head_dim = config.head_dim
        self.repeats = config.heads // config.kv_heads
        self.wq = nn.Linear(config.dim, config.heads * config.head_dim, bias=False)
        self.wk = nn.Linear(config.dim, config.kv_heads * config.head_dim, bias=False)
        self.wv = nn.Linear(config.dim, config.kv_heads * config.head_dim, bias=False)
        self.wo = nn.Linear(config.heads * config.head_dim, config.dim, bias=False)

    def forward(self, x: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        # -1 for the heads: under tensor parallelism a rank has only some of them.
        q = q.view(batch, length, -1, self.head_dim)
        k = k.view(batch, length, -1, self.head_dim)
        v = v.view(batch, length, -1, self.head_dim)
        q, k = rotate(q, k, frequencies)
        k, v = repeat_kv(k, self.repeats), repeat_kv(v, self.repeats)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.wo(out.transpose(1, 2).contiguous().view(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.ffn, bias=False)
        self.w2 = nn.Linear(config.ffn, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.ffn, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.attention = Attention(config)
        self.feed_forward = FeedForward(config)
        self.attention_norm = make_norm(config)
        self.ffn_norm = make_norm(config)

    def forward(self, x: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
        h = x + self.attention(self.attention_norm(x), frequencies)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    """Takes tokens, returns fp32 logits. `positions` is the maximum sequence length, the size of the rotary table."""

    def __init__(self, config: LlamaConfig, positions: int):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab, config.dim)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = make_norm(config)
        self.register_buffer("frequencies", self._frequencies(positions), persistent=False)
        self.output = nn.Linear(config.dim, config.vocab, bias=False)

    def _frequencies(self, positions: int) -> torch.Tensor:
        return rope_frequencies(self.config.head_dim, positions, self.config.rope_theta)

    @torch.no_grad()
    def init_weights(self) -> None:
        """Initialises a model that was built on meta and then got memory from to_empty()."""
        with torch.device("cpu"):
            table = self._frequencies(self.frequencies.shape[0])
        self.frequencies.copy_(table)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            else:
                nn.init.ones_(parameter)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.frequencies)
        logits = self.output(self.norm(x))
        return logits.float()
