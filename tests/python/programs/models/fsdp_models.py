"""The models of tests/fsdp/models.h in Python, statement by statement, so that tensors live and die alike."""

import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    """A block of the network. `spare` is a layer that forward uses only on request."""

    def __init__(self, dim, hidden, spare=False):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.spare = nn.Linear(dim, dim) if spare else None
        self.use_spare = False

    def forward(self, x):
        h = self.up(x)
        h = torch.relu(h)
        h = self.down(h)
        if self.use_spare:
            s = self.spare(x)
            h = h + s
        x = x + h
        return x


class Network(nn.Module):
    """Residual blocks and a head, with sizes that the numbers of ranks do not divide."""

    def __init__(self, dim, hidden, outer, spare=False, checkpointed=False, times=1):
        super().__init__()
        self.checkpointed = checkpointed
        self.times = times
        self.layers = nn.ModuleList(Residual(dim, size, spare) for size in hidden)
        self.branch = Residual(dim, hidden[0]) if spare else None
        self.head = nn.Linear(dim, outer)

    def forward(self, x):
        for _ in range(self.times):
            for block in self.layers:
                if self.checkpointed:
                    x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
                else:
                    x = block(x)
        x = self.head(x)
        return x


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        h = self.qkv(x)
        h = h.view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q = h[0]
        k = h[1]
        v = h[2]
        s = torch.matmul(q, k.transpose(-2, -1))
        s = s / math.sqrt(d // self.heads)
        s = torch.softmax(s, -1)
        y = torch.matmul(s, v)
        y = y.transpose(1, 2).reshape(b, t, d)
        y = self.out(y)
        return y


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = self.up(x)
        x = torch.nn.functional.gelu(x)
        x = self.down(x)
        return x


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim)

    def forward(self, x):
        h = self.norm1(x)
        h = self.attention(h)
        x = x + h
        h = self.norm2(x)
        h = self.mlp(h)
        x = x + h
        return x


class Head(nn.Module):
    """A linear layer without bias. Its weight may belong to another module."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight)


class GPT(nn.Module):
    def __init__(self, vocabulary, context, dim, heads, layers, tied=False, checkpointed=False, headless=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.headless = headless  # Forward ends before the head, which is called separately.
        self.tokens = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(context, dim)
        self.layers = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = Head(self.tokens.weight if tied else nn.Parameter(torch.empty(vocabulary, dim)))
        self.register_buffer("order", torch.arange(context))

    def forward(self, tokens):
        x = self.tokens(tokens)
        p = self.places(self.order)
        x = x + p
        del p
        for block in self.layers:
            if self.checkpointed:
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        x = self.norm(x)
        if not self.headless:
            x = self.head(x)
        return x


def numbers(numel, seed):
    """Pseudo-random doubles between -1/4 and 1/4, the same in both languages."""
    return (torch.arange(numel) * 7919 + seed * 104729).remainder(100003).double().div(100003).sub(0.5).div(2)


class NetworkCase:
    """How the scenarios build, name and feed a network."""

    batch = 4

    def __init__(self, case):
        self.dim = case.number("dim", 17)
        self.hidden = [int(size) for size in case.text("hidden", "13+5+2").split("+")]
        self.outer = case.number("outer", 3)
        self.spare = case.has("unused")
        self.checkpointed = case.has("checkpoint")
        self.times = case.number("times", 1)

    def build(self):
        return Network(self.dim, self.hidden, self.outer, self.spare, self.checkpointed, self.times)

    def blocks(self, model):
        return [*model.layers, *([model.branch] if self.spare else [])]

    def data(self, seed):
        return numbers(self.batch * self.dim, seed).float().view(self.batch, self.dim).mul(4), None

    def loss(self, model, inputs, targets):
        output = model(inputs)
        return output.square().mean()


class TextCase:
    """Batches of tokens and next-token targets."""

    batch = 2

    def __init__(self, case):
        self.vocabulary = case.number("vocabulary", 37)
        self.context = case.number("context", 6)

    def blocks(self, model):
        return list(model.layers)

    def data(self, seed):
        numel = self.batch * self.context
        text = (torch.arange(numel + 1) * 7919 + seed * 104729).remainder(100003).remainder(self.vocabulary)
        return text[:-1].view(self.batch, self.context), text[1:].contiguous()

    def loss(self, model, inputs, targets):
        logits = model(inputs)
        logits = logits.view(-1, self.vocabulary)
        return torch.nn.functional.cross_entropy(logits, targets)


class GPTCase(TextCase):
    def __init__(self, case):
        super().__init__(case)
        self.dim = case.number("dim", 8)
        self.heads = case.number("heads", 2)
        self.layers = case.number("layers", 3)
        self.tied = case.has("tied")
        self.checkpointed = case.has("checkpoint")
        self.chunked = case.has("chunked")

    def build(self):
        sizes = self.vocabulary, self.context, self.dim, self.heads, self.layers
        return GPT(*sizes, self.tied, self.checkpointed, self.chunked)

    def backward_by_chunks(self, model, inputs, targets):
        """The head and the loss of one text at a time, so that all logits never exist together."""
        hidden = model(inputs)
        leaf = hidden.detach().requires_grad_()
        total = 0
        for text, target in zip(leaf, targets.view(self.batch, self.context)):
            loss = torch.nn.functional.cross_entropy(model.head(text), target)
            loss.backward()
            total = total + loss.detach()
        hidden.backward(leaf.grad)
        return total
