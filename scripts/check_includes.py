#!/usr/bin/env python3
"""Checks that includes go only downwards.

The layers, lowest first, are those of DESIGN.md. A file includes files of its own layer and of lower ones, by full path,
and only what exists. The layers below `capture` never see torch; no library includes torch/torch.h, which costs 16 s a
file. In the pretend GPU the model knows no face, and only the runtime and the driver see CUDA's headers.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

LAYERS = [
    "base",
    "ledger",
    "pretend",
    "report",
    "safetensors",
    "architecture",
    "job",
    "capture",
    "nn",
    "distributed",
    "fsdp",
    "tracker",
    "models",
    "plan",
    "python",
    "cli",
]
TORCH_FREE = {"base", "ledger", "pretend", "report", "safetensors", "architecture", "job"}
SEES_CUDA = {"cuda", "runtime", "driver"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def check_file(root: str, path: str) -> Iterator[str]:
    parts = path.split("/")
    layer = parts[1]
    folder = parts[2] if layer == "pretend" and len(parts) > 3 else ""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                for defect in check_include(root, layer, folder, match[1] == '"', match[2]):
                    yield f"src/{path}:{number}: {defect}"


def check_include(root: str, layer: str, folder: str, quoted: bool, name: str) -> Iterator[str]:
    if name == "torch/torch.h":
        yield "includes torch/torch.h: name the narrow headers instead"
    elif layer in TORCH_FREE and re.match(r"(torch|ATen|c10)/", name):
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
    if LAYERS.index(included[1]) > LAYERS.index(layer):
        yield f"'{layer}' lies below '{included[1]}', and includes {name}"
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
        if layer not in LAYERS:
            defects.append(f"src/{path}: '{layer}' is no layer; the layers are {', '.join(LAYERS)}")
            continue
        defects += check_file(root, path)
    return defects


if __name__ == "__main__":
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = check(sys.argv[1] if len(sys.argv) > 1 else os.path.join(home, "src"))
    print("\n".join(found) or "includes go only downwards")
    sys.exit(bool(found))
