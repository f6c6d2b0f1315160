"""The keywords of `plan` with their types, for editors and type checkers.

Generated from the table in src/plimsoll/job/fields.cpp by tests/job: PLIMSOLL_REGENERATE=1 writes it again.
"""

from __future__ import annotations

import os
from typing import Literal, TypedDict


class JobFlags(TypedDict, total=False):
    """The flags of a job, as `plimsoll plan --help` lists them. None: as if it was not given."""

    # the GPU: a name that `plimsoll gpus` lists, or the path of a profile (default: H100-80GB)
    gpu: str | os.PathLike[str] | None
    # memory of the GPU (default: the profile's)
    gpu_memory: str | int | None
    # number of GPUs, with one rank each (default: 8)
    gpus: int | None
    # HSDP: the number of replicas; each is sharded over gpus / R GPUs (default: 1, no HSDP)
    replicas: int | None
    # the rank to plan (default: 0)
    rank: int | None
    # sequences of one GPU in one forward pass (default: 1)
    batch: int | None
    # tokens in a sequence (default: 8192, or the model's limit if it learns fewer positions)
    seq_len: int | None
    # training steps to run; memory is stable after the first (default: 2)
    steps: int | None
    # forward and backward passes in one step (default: 1)
    grad_accum: int | None
    # reduce gradients only in the last backward pass of a step (default: false)
    accum_no_sync: bool | None
    # compute dtype (default: bf16)
    param_dtype: Literal["bf16", "fp16", "fp32"] | None
    # dtype of the gradient reduction (default: fp32)
    reduce_dtype: Literal["bf16", "fp16", "fp32"] | None
    # dtype of the sharded parameters and optimizer states (default: fp32)
    master_dtype: Literal["bf16", "fp16", "fp32"] | None
    # free the gathered parameters after forward; auto: all but the root's; K: keep them sharded over K ranks (default:
    # auto)
    reshard_after_forward: Literal["auto", "always", "never"] | int | None
    # keep the last block gathered after forward, because backward needs it first (default: true)
    keep_last_block: bool | None
    # FSDP units: one per block, one per K blocks, or the whole model (default: blocks)
    wrap: str | None
    # activation checkpointing; every:K: every Kth block (selective:every:K too); ranges of blocks:
    # full@0-15+selective@16-23 (default: none)
    checkpoint: str | None
    # the optimizer (default: adamw)
    optimizer: Literal["adamw", "adam", "sgd"] | None
    # torch's implementation (default: foreach)
    optimizer_impl: Literal["foreach", "fused", "forloop"] | None
    # params: keep sharded parameters, gradients and states on the CPU (default: none)
    offload: Literal["params", "none"] | None
    # clip gradients to this norm; none: do not clip (default: 1)
    clip_grad_norm: float | Literal["none"] | None
    # cast the logits to fp32 for the loss (default: true)
    loss_fp32: bool | None
    # keep the logits until the next forward pass ends (default: false)
    keep_logits: bool | None
    # compute norms in several operations or in one (default: composite)
    norm: Literal["composite", "fused"] | None
    # PYTORCH_ALLOC_CONF, such as expandable_segments:True (default: torch's)
    alloc_conf: str | None
