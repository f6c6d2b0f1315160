"""`plan`: what `plimsoll plan` says of a language model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Literal

from plimsoll.api import command, installation
from plimsoll.api.model_argument import Model, resolve
from plimsoll.api.result import Result
from plimsoll.document_fields import REPORT

Dtype = Literal["bf16", "fp16", "fp32"]
FilePath = str | os.PathLike[str]


class Plan(Result):
    """What a language model takes of a GPU. What all results have is said in Result; beside it:

    model           as it was asked for
    parameters      their number, before sharding
    job             every setting, those that were left out too
    host            bytes that the CPU held at most, and host_pinned: what of it was pinned
    """

    def __init__(self, document: str, text: str, label: str) -> None:
        super().__init__(document, text)
        self.model = label
        self.parameters: int = self._values["model"]["parameters"]
        self.job: dict[str, Any] = dict(self._values["job"])
        self.host: int = self._values[REPORT["host"]]
        self.host_pinned: int = self._values[REPORT["host_pinned"]]

    @property
    def name(self) -> str:
        return self.model


def plan(
    model: Model | None = None,
    *,
    gpus: int | None = None,
    batch: int | None = None,
    seq_len: int | None = None,
    gpu: FilePath | None = None,
    gpu_memory: str | int | None = None,
    replicas: int | None = None,
    rank: int | None = None,
    steps: int | None = None,
    grad_accum: int | None = None,
    accum_no_sync: bool | None = None,
    param_dtype: Dtype | None = None,
    reduce_dtype: Dtype | None = None,
    master_dtype: Dtype | None = None,
    reshard_after_forward: Literal["auto", "always", "never"] | bool | int | None = None,
    keep_last_block: bool | None = None,
    wrap: str | None = None,
    checkpoint: str | None = None,
    optimizer: Literal["adamw", "adam", "sgd"] | None = None,
    optimizer_impl: Literal["foreach", "fused", "forloop"] | None = None,
    offload: Literal["params", "none"] | None = None,
    clip_grad_norm: float | Literal["none"] | None = None,
    loss_fp32: bool | None = None,
    keep_logits: bool | None = None,
    norm: Literal["composite", "fused"] | None = None,
    alloc_conf: str | None = None,
    job: FilePath | None = None,
    depth: int | None = None,
    timeout: float | None = None,
) -> Plan:
    """Whether training a language model fits a GPU, and where every byte goes.

    It starts `plimsoll plan`, which trains the model for two steps on the pretend GPU; about a second. The keywords are
    that command's flags. One that is None is left out: then the job file has it, else it is what is said here.

    model: a name that `plimsoll models` lists, the path of a config.json (or of a folder with one), a dict like one, or a
        configuration of transformers. None: the job file names it.
    gpus: GPUs of the job, one rank each, sharded by FSDP2 (1; a job file without it: 8).
    batch: sequences for each GPU and forward (1).
    seq_len: tokens of a sequence (8192, or the model's positions where it learns them).
    gpu: the card, a name of `plimsoll gpus` or the path of a profile, a .json ("H100-80GB").
    gpu_memory: another amount of memory than the card has, as "75GiB" or in bytes.
    replicas: HSDP with so many replicas, each sharded over gpus / replicas (1: FSDP).
    rank: the rank that is looked at (0).
    steps: to run; memory settles after the first (2).
    grad_accum: forwards and backwards for each step (1).
    accum_no_sync: reduce gradients in the last backward of a step only (False).
    param_dtype: what blocks compute in ("bf16").
    reduce_dtype: what gradients are reduced in ("fp32").
    master_dtype: what the optimizer sees, sharded parameters and states ("fp32").
    reshard_after_forward: free parameters after forward: "auto" (all but the root's), "always" or True, "never" or False,
        or a number of ranks that they stay sharded over ("auto").
    keep_last_block: do not free the last block after forward, because backward needs it first (True).
    wrap: what is gathered together: "blocks", "blocks:K" or "root" ("blocks").
    checkpoint: activation checkpointing: "none", "full", "selective", "every:K", or ranges as in
        "full@0-15+selective@16-23" ("none").
    optimizer: "adamw", "adam" or "sgd" ("adamw").
    optimizer_impl: how it steps: "foreach", "fused" or "forloop" ("foreach").
    offload: "params" keeps sharded parameters, gradients and states on the CPU ("none").
    clip_grad_norm: clip gradients to this norm; "none": do not (1.0).
    loss_fp32: cast logits to fp32 for the loss (True).
    keep_logits: the loop holds logits until the next ones are there (False).
    norm: norms as several operations ("composite") or as one ("fused") ("composite").
    alloc_conf: PYTORCH_ALLOC_CONF, as in "expandable_segments:True" (torch's own).
    job: a TOML file with these names, or of torchtitan's form; keywords go over it.
    depth: list modules of so many parts of a path (2).
    timeout: seconds after which to give up with TimeoutError (None: never).

    Raises ValueError where the command refuses the job, with its words; InstallationError where plimsoll is not
    completely there; RuntimeError with what it said where it failed.

    >>> from plimsoll.api import plan
    >>> small = plan("gpt2", gpus=8, batch=4)
    >>> small.fits, small.barely, small.steps[1].step
    (True, False, 1)
    >>> sum(small.categories.values()) == small.peak.active
    True
    >>> plan("llama3-8b", gpus=8, gpu="A100-40GB", checkpoint="full", batch=8).fits
    False
    >>> tiny = {"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "n_positions": 128, "vocab_size": 1000}
    >>> plan(tiny).parameters
    172288
    >>> plan("gpt2", batch=0)
    Traceback (most recent call last):
    ValueError: --batch expects a whole number from 1 to 2147483647, found '0': that is too small
    """
    if model is None and job is None:
        raise ValueError("plan() needs a model, or a job file that names one: plan('llama3-8b', gpus=8)")
    flags = {
        "gpus": gpus,
        "batch": batch,
        "seq_len": seq_len,
        "gpu": None if gpu is None else _absolute_profile(gpu),
        "gpu_memory": gpu_memory,
        "replicas": replicas,
        "rank": rank,
        "steps": steps,
        "grad_accum": grad_accum,
        "accum_no_sync": accum_no_sync,
        "param_dtype": param_dtype,
        "reduce_dtype": reduce_dtype,
        "master_dtype": master_dtype,
        "reshard_after_forward": _reshard(reshard_after_forward),
        "keep_last_block": keep_last_block,
        "wrap": wrap,
        "checkpoint": checkpoint,
        "optimizer": optimizer,
        "optimizer_impl": optimizer_impl,
        "offload": offload,
        "clip_grad_norm": clip_grad_norm,
        "loss_fp32": loss_fp32,
        "keep_logits": keep_logits,
        "norm": norm,
        "alloc_conf": alloc_conf,
        "job": None if job is None else os.path.abspath(job),
        "depth": depth,
    }
    found = installation.find()
    if found.home is None:
        installation.check_torch(found)
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as temporary:
        folder = Path(temporary)
        named = resolve(model, folder) if model is not None else None
        is_written = (folder / "config.json").exists()
        answer = command.run(
            found,
            "plan",
            [_flag(name, value) for name, value in flags.items() if value is not None],
            [named.argument] if named is not None else [],
            timeout=timeout,
            folder=folder if is_written else None,
        )
    document = answer.required_document()
    command.tell(answer.errors)
    result = Plan(document, answer.text, named.label if named is not None else "")
    result.model = result.model or str(result.to_dict()["model"]["name"])
    return result


def _flag(name: str, value: object) -> str:
    text = (
        str(value).lower() if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else value
    )
    return f"--{name.replace('_', '-')}={text}"


def _reshard(value: str | bool | int | None) -> str | int | None:
    if isinstance(value, bool):
        return "always" if value else "never"
    return value


def _absolute_profile(gpu: FilePath) -> str:
    """A profile of the user's, from the root: the command may be started elsewhere."""
    text = os.fspath(gpu)
    return os.path.abspath(text) if text.endswith(".json") else text
