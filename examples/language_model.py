"""Language models by their config.json, in plain PyTorch: Llama, Mistral, Qwen2, Qwen3, Phi-3, GPT-2, Mixtral, Qwen3-MoE.

`plimsoll plan` builds the same models in C++, statement by statement, so that tensors have the same lifetimes.
"""

import json
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from llama import Fp32RMSNorm, repeat_kv, rope_frequencies, rotate
from torch import nn


@dataclass
class Experts:
    count: int
    per_token: int
    hidden: int
    sparse_step: int = 1
    dense_blocks: set[int] = field(default_factory=set)


@dataclass
class Config:
    family: str
    vocabulary: int
    dim: int
    hidden: int
    blocks: int
    heads: int
    kv_heads: int
    head_dim: int
    positions: int
    norm_epsilon: float
    rope_theta: float = 0.0
    tied: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    experts: Experts | None = None
    norm: str = "composite"

    def has_experts(self, block: int) -> bool:
        e = self.experts
        return e is not None and (block + 1) % e.sparse_step == 0 and block not in e.dense_blocks


def _gpt2(c: dict) -> Config:
    dim, heads = c["n_embd"], c["n_head"]
    return Config(
        family="gpt2",
        vocabulary=c.get("vocab_size", 50257),
        dim=dim,
        hidden=c.get("n_inner") or 4 * dim,
        blocks=c["n_layer"],
        heads=heads,
        kv_heads=heads,
        head_dim=dim // heads,
        positions=c.get("n_positions", 1024),
        norm_epsilon=c.get("layer_norm_epsilon", 1e-5),
        tied=c.get("tie_word_embeddings", True),
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
    )


def _experts(c: dict, family: str) -> Experts | None:
    if family == "mixtral":
        return Experts(c.get("num_local_experts", 8), c.get("num_experts_per_tok", 2), c["intermediate_size"])
    if family == "qwen3_moe":
        return Experts(
            c.get("num_experts", 128),
            c.get("num_experts_per_tok", 8),
            c.get("moe_intermediate_size", 768),
            c.get("decoder_sparse_step", 1),
            set(c.get("mlp_only_layers") or []),
        )
    return None


def read_config(path: str) -> Config:
    with open(path, encoding="utf-8") as file:
        c = json.load(file)
    family = c["model_type"]
    if family == "gpt2":
        return _gpt2(c)
    heads, dim = c["num_attention_heads"], c["hidden_size"]
    qwen3 = family in ("qwen3", "qwen3_moe")
    bias = bool(c.get("attention_bias")) if family == "llama" or qwen3 else False
    return Config(
        family=family,
        vocabulary=c["vocab_size"],
        dim=dim,
        hidden=c["intermediate_size"],
        blocks=c["num_hidden_layers"],
        heads=heads,
        kv_heads=c.get("num_key_value_heads") or (8 if family in ("mistral", "mixtral") else heads),
        head_dim=c.get("head_dim") or (128 if qwen3 else dim // heads),
        positions=c.get("max_position_embeddings", 2048),
        norm_epsilon=c.get("rms_norm_eps", 1e-6),
        rope_theta=c.get("rope_theta", 10000.0),
        tied=c.get("tie_word_embeddings", False),
        qkv_bias=family == "qwen2" or bias,
        output_bias=bias,
        mlp_bias=family == "llama" and bool(c.get("mlp_bias")),
        qk_norm=qwen3,
        experts=_experts(c, family),
    )


def rms_norm(config: Config, dim: int) -> nn.Module:
    if config.norm == "fused":
        return nn.RMSNorm(dim, eps=config.norm_epsilon)
    return Fp32RMSNorm(dim, config.norm_epsilon)


def rotations(head_dim: int, positions: int, theta: float) -> torch.Tensor:
    with torch.device("cpu"):
        return rope_frequencies(head_dim, positions, theta)


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.fused = config.family == "phi3"
        if self.fused:
            self.wqkv = nn.Linear(config.dim, queries + 2 * keys, bias=config.qkv_bias)
        else:
            self.wq = nn.Linear(config.dim, queries, bias=config.qkv_bias)
            self.wk = nn.Linear(config.dim, keys, bias=config.qkv_bias)
            self.wv = nn.Linear(config.dim, keys, bias=config.qkv_bias)
        self.wo = nn.Linear(queries, config.dim, bias=config.output_bias)
        self.qk_norm = config.qk_norm
        if self.qk_norm:
            self.q_norm = rms_norm(config, config.head_dim)
            self.k_norm = rms_norm(config, config.head_dim)

    def project(self, x: torch.Tensor) -> "tuple[torch.Tensor, ...]":
        if self.fused:
            keys = self.kv_heads * self.head_dim
            return self.wqkv(x).split([self.heads * self.head_dim, keys, keys], dim=-1)
        return self.wq(x), self.wk(x), self.wv(x)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.project(x)
        q = q.view(batch, length, self.heads, self.head_dim)
        k = k.view(batch, length, self.kv_heads, self.head_dim)
        v = v.view(batch, length, self.kv_heads, self.head_dim)
        if self.qk_norm:
            q = self.q_norm(q)
            k = self.k_norm(k)
        q, k = rotate(q, k, turns)
        times = self.heads // self.kv_heads
        k, v = repeat_kv(k, times), repeat_kv(v, times)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.wo(out.transpose(1, 2).contiguous().view(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.fused = config.family == "phi3"
        if self.fused:
            self.w13 = nn.Linear(config.dim, 2 * config.hidden, bias=config.mlp_bias)
        else:
            self.w1 = nn.Linear(config.dim, config.hidden, bias=config.mlp_bias)
        self.w2 = nn.Linear(config.hidden, config.dim, bias=config.mlp_bias)
        if not self.fused:
            self.w3 = nn.Linear(config.dim, config.hidden, bias=config.mlp_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fused:
            gate, up = self.w13(x).chunk(2, dim=-1)
            return self.w2(F.silu(gate) * up)
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Router(nn.Module):
    """The experts of each token, and their weights."""

    def __init__(self, config: Config):
        super().__init__()
        self.gate = nn.Linear(config.dim, config.experts.count, bias=False)
        self.per_token = config.experts.per_token

    def forward(self, x: torch.Tensor) -> "tuple[torch.Tensor, torch.Tensor]":
        scores = self.gate(x)
        scores = F.softmax(scores.float(), dim=1)
        top, chosen = torch.topk(scores, self.per_token, dim=1)
        top = top / top.sum(dim=-1, keepdim=True)
        return top, chosen


class GroupedExperts(nn.Module):
    """Multiplies all experts in one call for each projection. Rows are sorted by expert."""

    def __init__(self, config: Config):
        super().__init__()
        count, hidden = config.experts.count, config.experts.hidden
        self.w1 = nn.Parameter(torch.empty(count, hidden, config.dim))
        self.w2 = nn.Parameter(torch.empty(count, config.dim, hidden))
        self.w3 = nn.Parameter(torch.empty(count, hidden, config.dim))

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ends = torch.cumsum(rows, dim=0, dtype=torch.int32)
        given = x.bfloat16()
        h = F.silu(torch._grouped_mm(given, self.w1.bfloat16().transpose(-2, -1), offs=ends))
        h = h * torch._grouped_mm(given, self.w3.bfloat16().transpose(-2, -1), offs=ends)
        return torch._grouped_mm(h, self.w2.bfloat16().transpose(-2, -1), offs=ends).type_as(x)


class MixtureOfExperts(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.router = Router(config)
        self.experts = GroupedExperts(config)
        self.count, self.per_token = config.experts.count, config.experts.per_token

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, dim = x.shape
        x = x.view(-1, dim)
        top, chosen = self.router(x)
        chosen = chosen.view(-1)
        rows = torch.histc(chosen, bins=self.count, min=0, max=self.count)
        order = torch.argsort(chosen, stable=True)
        weights = top.view(-1)[order]
        tokens = (order // self.per_token).reshape(-1, 1).expand(-1, dim)
        routed = torch.gather(x, dim=0, index=tokens)
        routed = self.experts(routed, rows)
        routed = (routed.float() * weights.reshape(-1, 1)).type_as(x)
        out = torch.zeros_like(x)
        out = out.scatter_add(dim=0, index=tokens, src=routed)
        return out.reshape(batch, length, dim)


class Block(nn.Module):
    def __init__(self, config: Config, index: int):
        super().__init__()
        self.attention = Attention(config)
        self.feed_forward = MixtureOfExperts(config) if config.has_experts(index) else FeedForward(config)
        self.attention_norm = rms_norm(config, config.dim)
        self.ffn_norm = rms_norm(config, config.dim)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        h = x + self.attention(self.attention_norm(x), turns)
        return h + self.feed_forward(self.ffn_norm(h))


class GPT2Block(nn.Module):
    """Without dropout."""

    def __init__(self, config: Config, index: int):
        super().__init__()
        self.heads = config.heads
        self.ln_1 = nn.LayerNorm(config.dim, eps=config.norm_epsilon)
        self.c_attn = nn.Linear(config.dim, 3 * config.dim)
        self.c_proj = nn.Linear(config.dim, config.dim)
        self.ln_2 = nn.LayerNorm(config.dim, eps=config.norm_epsilon)
        self.c_fc = nn.Linear(config.dim, config.hidden)
        self.m_proj = nn.Linear(config.hidden, config.dim)

    def forward(self, x: torch.Tensor, turns: torch.Tensor | None) -> torch.Tensor:
        batch, length, dim = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(dim, dim=2)
        q = q.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
        k = k.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(out.transpose(1, 2).contiguous().view(batch, length, dim))
        return x + self.m_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    """Takes tokens, returns logits. `length` is the maximum sequence length."""

    def __init__(self, config: Config, length: int, loss_fp32: bool = True):
        super().__init__()
        self.config, self.loss_fp32 = config, loss_fp32
        gpt2 = config.family == "gpt2"
        self.embedding = nn.Embedding(config.vocabulary, config.dim)
        make = GPT2Block if gpt2 else Block
        self.layers = nn.ModuleList(make(config, i) for i in range(config.blocks))
        if gpt2:
            self.positions = nn.Embedding(config.positions, config.dim)
            self.norm = nn.LayerNorm(config.dim, eps=config.norm_epsilon)
            self.turns = None
        else:
            self.norm = rms_norm(config, config.dim)
            # Twice the needed length, as in torchtitan's first models.
            table = torch.empty(2 * length, config.head_dim // 2, dtype=torch.complex64)
            self.register_buffer("turns", table, persistent=False)
        self.output = nn.Linear(config.dim, config.vocabulary, bias=False)
        if config.tied:
            self.output.weight = self.embedding.weight

    @torch.no_grad()
    def init_weights(self) -> None:
        """Initialises without temporaries on the device."""
        if self.turns is not None:
            self.turns.copy_(rotations(self.config.head_dim, self.turns.shape[0], self.config.rope_theta))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            else:
                nn.init.ones_(parameter)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        if self.turns is None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x, self.turns)
        logits = self.output(self.norm(x))
        return logits.float() if self.loss_fp32 else logits
