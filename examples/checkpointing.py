"""Activation checkpointing of a block: recompute all of it, or all but attention and every other matmul."""

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

_aten = torch.ops.aten
_ATTENTION = {
    _aten._scaled_dot_product_flash_attention.default,
    _aten._scaled_dot_product_efficient_attention.default,
    _aten._scaled_dot_product_cudnn_attention.default,
}


def _keep_attention_and_every_other_matmul():
    matmuls = {False: 0, True: 0}  # seen so far, in the forward and in the recomputation

    def policy(context, op, *args, **kwargs):
        if op == _aten.mm.default:
            matmuls[context.is_recompute] += 1
            keep = matmuls[context.is_recompute] % 2 == 1
        else:
            keep = op in _ATTENTION
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


class Checkpointed(nn.Module):
    """`mode`: "full" recomputes the whole block in backward; "op" keeps results that are expensive to recompute."""

    def __init__(self, block: nn.Module, mode: str):
        super().__init__()
        self.block = block
        self.options = {"context_fn": _keep_attention_and_every_other_matmul} if mode == "op" else {}

    def forward(self, *args):
        return checkpoint(self.block, *args, use_reentrant=False, preserve_rng_state=False, **self.options)


def checkpoint_layers(layers: nn.ModuleList, mode: str) -> None:
    if mode != "none":
        for i, layer in enumerate(layers):
            layers[i] = Checkpointed(layer, mode)
