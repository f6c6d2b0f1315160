"""Runs operators of torch's own op database on the CPU and on the pretend GPU, and reports results that differ in form.

    python runner.py FIRST LAST DTYPE OUT.jsonl

takes the operators numbered FIRST to LAST - 1 and appends a line for each to OUT.jsonl: its name, how many samples ran,
what differed, and whether a value was read back from the device in a sample that differed ("reads": the operator depends
on its data, which the pretend GPU does not have). A line with "started" is written before each operator, so that the test knows the
operator of a crash. Values are not compared, because the pretend GPU has none.

Sometimes torch's CUDA code gives another layout or dtype than its CPU code. If the two devices differ, the result is compared with
torch's own prediction for CUDA, a fake tensor. Agreement is counted under "as_fake", and is not a difference. Samples that torch's
CUDA build itself refuses are counted under "refused", and not compared. Samples that the database has only for the CPU, and that
torch's CUDA build refuses, are counted under "for_the_cpu".
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import attention
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

control = ctypes.CDLL(os.path.join(os.environ["PLIMSOLL_PRETEND_DIR"], "libplimsoll_pretend.so"))

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
MAX_PROBLEMS = 3
AS_FAKE = "as torch's fake tensors have it on CUDA"
ATTENTION = "nn.functional.scaled_dot_product_attention"


def _ran(op, sample, backward):
    return dict(run(op, sample, backward))


def read_backs() -> int:
    counters = (ctypes.c_uint64 * 2)()
    control.plimsoll_work(counters)
    return counters[1]


def on_gpu(value: Any) -> Any:
    """The same argument on the GPU: same sizes and strides, without values."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return value.detach().to("cuda").requires_grad_(value.requires_grad)
        copy = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="cuda")
        if value.is_conj():
            copy = copy.conj()
        if value.is_neg():
            copy = torch._neg_view(copy)
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or value == "cpu":
        return "cuda"
    return value


def fresh(value: Any) -> Any:
    """A new leaf for each run, so that gradients and in-place changes stay apart."""
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def form(value: Any) -> Any:
    """The compared properties of a result."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    if value.layout is not torch.strided:
        return [str(value.layout), list(value.size()), str(value.dtype)]
    # The stride of a dimension of size one, or of an empty tensor, has no effect.
    strides = [s for n, s in zip(value.size(), value.stride()) if n > 1] if value.numel() else []
    return [list(value.size()), strides, str(value.dtype)]


def run(op: Any, sample: Any, backward: bool) -> Iterator[tuple[str, list[Any]]]:
    arguments = (sample.input, sample.args, sample.kwargs)
    result = op(arguments[0], *arguments[1], **arguments[2])
    outputs = tree_leaves(result)
    yield "forward", [form(value) for value in outputs]
    if not backward:
        return
    roots = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    leaves = [a for a in tree_leaves(arguments) if isinstance(a, torch.Tensor) and a.requires_grad and a.is_leaf]
    if not roots or not leaves:
        return
    grads = torch.autograd.grad(roots, leaves, [torch.ones_like(root) for root in roots], allow_unused=True)
    yield "backward", [form(grad) for grad in grads]


def mapped(sample: Any, function: Any) -> Any:
    return type(sample)(
        tree_map(function, sample.input), args=tree_map(function, sample.args), kwargs=tree_map(function, sample.kwargs)
    )


def as_torch_places_it(op: Any, dtype: torch.dtype, backward: bool, number: int, sample: Any) -> Any:
    """The sample on the GPU, except the arguments that torch's own samples for a GPU keep on the CPU."""
    for index, placed in enumerate(op.sample_inputs("cuda", dtype, requires_grad=backward)):
        if index == number:
            leaves = tree_leaves((placed.input, placed.args, placed.kwargs))
            stays = iter([isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu" for leaf in leaves])
            return mapped(sample, lambda value: fresh(value) if next(stays, False) else on_gpu(value))
    return mapped(sample, on_gpu)


def same_algorithm(op: Any) -> None:
    """Attention has several algorithms with different layouts: compare the one that both devices have."""
    fused = op.name != ATTENTION
    torch.backends.cuda.enable_flash_sdp(fused)
    torch.backends.cuda.enable_mem_efficient_sdp(fused)
    torch.backends.cuda.enable_cudnn_sdp(fused)


def refused_by_torch(problem: str) -> bool:
    """Whether torch's CUDA build itself refuses this, as on a real GPU."""
    return "not supported on CUDA" in problem or problem.startswith("NotImplementedError: Could not run")


def has_for_cuda(op: Any, dtype: torch.dtype, backward: bool, sample: Any) -> bool:
    """Whether torch's database has a sample for CUDA with the same options apart from tensors."""

    def options(of: Any) -> list[Any]:
        return [on_gpu(value) for value in tree_leaves((of.args, of.kwargs)) if not isinstance(value, torch.Tensor)]

    return any(options(other) == options(sample) for other in op.sample_inputs("cuda", dtype, requires_grad=backward))


def predicted(op: Any, sample: Any, backward: bool, seen: Any = contextlib.nullcontext()) -> dict[str, list[Any]]:
    """The prediction of torch's fake tensors for the same call on CUDA; None if they cannot predict it."""
    with FakeTensorMode() as mode, seen:
        try:
            return dict(
                run(op, mapped(sample, lambda v: mode.from_tensor(v) if isinstance(v, torch.Tensor) else v), backward)
            )
        except Exception:
            return {}


def differences(op: Any, sample: Any, backward: bool, expected: dict[str, list[Any]]) -> list[str]:
    try:
        found = dict(run(op, sample, backward))
        differing = [stage for stage in found if stage in expected and found[stage] != expected[stage]]
        if not differing:
            return []
        fake = predicted(op, mapped(sample, on_gpu), backward)
        return [
            AS_FAKE
            if fake.get(stage) == found[stage]
            else f"{stage}: {found[stage]} where the CPU gives {expected[stage]}"
            for stage in differing
        ]
    except Exception as error:
        first_line = str(error).splitlines()[0] if str(error) else ""
        return [f"{type(error).__name__}: {first_line}"[:300]]


def compare(op: Any, dtype: torch.dtype) -> dict[str, Any]:
    same_algorithm(op)
    backward = op.supports_autograd and dtype in op.supported_backward_dtypes("cuda")
    report: dict[str, Any] = {"op": op.name, "variant": op.variant_test_name, "samples": 0, "problems": []}
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=backward)):
        there = mapped(sample, on_gpu)
        here = mapped(sample, fresh)
        try:
            expected = dict(run(op, here, backward))
        except Exception:  # the CPU refuses the sample, so there is nothing to compare
            continue
        before = read_backs()
        problems = differences(op, there, backward, expected)
        if problems and "to be on cpu" in problems[0]:
            problems = differences(op, as_torch_places_it(op, dtype, backward, number, sample), backward, expected)
        if any(map(refused_by_torch, problems)):
            kind = "refused" if has_for_cuda(op, dtype, backward, sample) else "for_the_cpu"
            report[kind] = report.get(kind, 0) + 1
            continue
        report["samples"] += 1
        if AS_FAKE in problems:
            report["as_fake"] = report.get("as_fake", 0) + 1
            problems = [problem for problem in problems if problem != AS_FAKE]
        if problems:
            report["problems"] += problems
            report["reads"] = report.get("reads", False) or read_backs() > before
        if len(report["problems"]) >= MAX_PROBLEMS:
            break
    return report


def compare_algorithms(op: Any, dtype: torch.dtype) -> dict[str, Any]:
    """For attention, "algorithms" counts the samples that each algorithm of the GPU accepted, all as predicted for CUDA."""
    report = compare(op, dtype)
    backward = dtype in op.supported_backward_dtypes("cuda")
    report["algorithms"] = {}
    for sample in op.sample_inputs("cpu", dtype, requires_grad=backward):
        there, fake = mapped(sample, on_gpu), mapped(sample, on_gpu)
        ours = functools.partial(_ran, op, there, backward)
        theirs = functools.partial(predicted, op, fake, backward)
        for name, problem in attention.compared(ours, theirs, form):
            report["algorithms"][name] = report["algorithms"].get(name, 0) + 1
            report["problems"] += [problem] if problem else []
    return report


def main() -> None:
    first, last, dtype_name, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    dtype = DTYPES[dtype_name]
    warnings.simplefilter("ignore")
    with open(out, "a", encoding="utf-8") as lines:
        for number in range(first, min(last, len(op_db))):
            op = op_db[number]
            print(json.dumps({"started": number, "op": op.name}), file=lines, flush=True)
            if dtype not in op.supported_dtypes("cuda") or dtype not in op.supported_dtypes("cpu"):
                report: dict[str, Any] = {"op": op.name, "variant": op.variant_test_name, "skipped": "dtype"}
            else:
                try:
                    report = (compare_algorithms if op.name == ATTENTION else compare)(op, dtype)
                except Exception as error:
                    report = {
                        "op": op.name,
                        "variant": op.variant_test_name,
                        "samples": 0,
                        "problems": [f"sampling: {type(error).__name__}: {error}"[:300]],
                    }
            print(json.dumps({"number": number, **report}), file=lines, flush=True)
        print(json.dumps({"count": len(op_db)}), file=lines, flush=True)


if __name__ == "__main__":
    main()
