#!/usr/bin/env python3
"""Checks that C++ files include only what their layer may see.

    check_includes.py [SRC]      check all files below SRC
    check_includes.py --table    print the table of layers, which section 3 of DESIGN.md contains

A file includes by full path, and only files that exist. Torch-free layers never see torch. No file includes torch/torch.h,
which costs 16 s to compile. In the pretend GPU, the model knows no face, and only the runtime and the driver see CUDA's
headers; other layers see only the model.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple


class Layer(NamedTuple):
    sees: str
    purpose: str
    torch: bool = False


LAYERS = {
    "base": Layer("", "bytes and units, errors, scopes of a thread"),
    "ledger": Layer(
        "base", "counts events: live allocations, category and owner of each, peaks with their contents, event log"
    ),
    "pretend": Layer("base", "the pretend GPU: model, faces, stubs, profiles (next table)"),
    "report": Layer("base", "the values of a report; writes them as text and JSON, and reads the JSON"),
    "safetensors": Layer("base", "safetensors files, and a folder of checkpoints that survives a crash at any moment"),
    "architecture": Layer(
        "base", "language models as their `config.json` describes them: families, presets, parameters"
    ),
    "job": Layer(
        "base pretend report architecture",
        "the settings of a training run: one table of fields for flags, files (ours and torchtitan's TOML), documents "
        "and sweeps; contradictions",
    ),
    "capture": Layer(
        "base ledger",
        "reads allocation events: the CUDA caching allocator's trace, the CPU's and the host (pinned memory) allocator, "
        "the profiler's channel",
        torch=True,
    ),
    "nn": Layer(
        "base",
        "parts that libtorch's C++ front end lacks: forward hooks, device scope, saved-tensor hooks, activation "
        "checkpointing, Python's optimizers",
        torch=True,
    ),
    "distributed": Layer(
        "base",
        "process groups by name (gloo, nccl, fake), collectives with errors that name them, device mesh",
        torch=True,
    ),
    "fsdp": Layer(
        "base safetensors nn distributed", "FSDP2: `fully_shard`, its runtime, state and checkpoints", torch=True
    ),
    "tracker": Layer(
        "base ledger report capture nn distributed fsdp",
        "`MemTracker` and `FSDPMemTracker`; attribution of a peak",
        torch=True,
    ),
    "models": Layer("base architecture job nn", "language models built from an architecture", torch=True),
    "plan": Layer(
        "base ledger pretend report architecture job nn distributed fsdp tracker models",
        "runs a job's training on the pretend GPU and makes its report; the worker process `plimsoll-planner`",
        torch=True,
    ),
    "python": Layer(
        "base report safetensors capture nn distributed fsdp tracker",
        "the extension module `plimsoll._C`: Python's modules, optimizers and FSDP2 for the trackers",
        torch=True,
    ),
    "cli": Layer(
        "base pretend report architecture job", "the `plimsoll` command; sweeps, searches and comparisons of plans"
    ),
}
SEES_CUDA = {"cuda", "runtime", "driver"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def table() -> str:
    lines = ["| layer | may see | purpose |", "|---|---|---|"]
    for name, layer in LAYERS.items():
        sees = ", ".join(layer.sees.split() + ["torch"] * layer.torch) or "–"
        lines.append(f"| `{name}` | {sees} | {layer.purpose} |")
    return "\n".join(lines) + "\n"


def check_file(root: str, path: str) -> Iterator[str]:
    parts = path.split("/")
    folder = parts[2] if parts[1] == "pretend" and len(parts) > 3 else ""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                for defect in check_include(root, parts[1], folder, match[1] == '"', match[2]):
                    yield f"src/{path}:{number}: {defect}"


def check_include(root: str, layer: str, folder: str, quoted: bool, name: str) -> Iterator[str]:
    if name == "torch/torch.h":
        yield "includes torch/torch.h: name the narrow headers instead"
    elif not LAYERS[layer].torch and re.match(r"(torch|ATen|c10)/", name):
        yield f"'{layer}' is torch-free, and includes {name}"
    if layer == "pretend" and folder not in SEES_CUDA and re.match(r"(cuda|driver_types|vector_types)", name):
        yield f"'pretend/{folder}' includes {name}: only pretend/{', pretend/'.join(sorted(SEES_CUDA))} see CUDA's headers"
    if not quoted:
        return
    if not name.startswith("plimsoll/"):
        yield f'includes "{name}": write the full path, "plimsoll/…"'
        return
    if not os.path.exists(os.path.join(root, name)):
        yield f"includes {name}, which does not exist"
        return
    included = name.split("/")
    if included[1] != layer and included[1] not in LAYERS[layer].sees.split():
        yield f"'{layer}' may see {LAYERS[layer].sees.replace(' ', ', ') or 'no other layer'}, and includes {name}"
    elif included[1] == "pretend" != layer and included[2] != "model":
        yield f"'{layer}' may see the model of the pretend GPU only, and includes {name}"
    if layer == included[1] == "pretend" and folder == "model" and included[2] != "model":
        yield f"the model knows no face, and includes {name}"


def sources(root: str) -> Iterator[str]:
    for folder, _, files in sorted(os.walk(os.path.join(root, "plimsoll"))):
        for name in sorted(files):
            if name.endswith((".h", ".cpp", ".c")):
                yield os.path.relpath(os.path.join(folder, name), root)


def check(root: str) -> list[str]:
    defects = []
    for path in sources(root):
        layer = path.split("/")[1]
        if layer in LAYERS:
            defects += check_file(root, path)
        else:
            defects.append(f"src/{path}: '{layer}' is not a layer; the layers are {', '.join(LAYERS)}")
    return defects


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        print(table(), end="")
        sys.exit()
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = check(sys.argv[1] if len(sys.argv) > 1 else os.path.join(home, "src"))
    print("\n".join(found) or "includes follow the table of layers")
    sys.exit(bool(found))
