#!/usr/bin/env python3
"""Compares `plimsoll plan` and `plimsoll run` with measurements of real GPUs, in the tables of docs/accuracy.md.

scripts/accuracy.py           print the tables
scripts/accuracy.py --write   write them into docs/accuracy.md
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parents[1]
PAGE = HOME / "docs" / "accuracy.md"
WITHIN = 1.0  # percent of the measured value: the promised accuracy


class Row(NamedTuple):
    job: str
    book: str  # "active" or "reserved"
    measured: float  # GiB
    command: str  # without ./plimsoll
    source: str
    golden: str = ""  # the recording in tests/golden/training that has the same bytes
    known: str = ""  # the reason for a larger difference than promised


ISSUE_165 = "torchtitan issue 165, March 2024"
TABLE_2024 = "torchtitan's table of December 2024"
PLANS = [
    Row(
        "Llama-2-7B, 8 GPUs, full checkpointing, logits kept",
        "active",
        22.73,
        "plan llama2-7b --gpus 8 --batch 8 --seq-len 2048 --checkpoint full --keep-logits",
        ISSUE_165,
    ),
    *(
        Row(
            f"Llama-3.1-8B, {gpus} GPUs, selective checkpointing",
            "reserved",
            measured,
            f"plan llama3.1-8b --batch 2 --seq-len 8192 --checkpoint selective --gpu H100-96GB --gpus {gpus}",
            TABLE_2024,
        )
        for gpus, measured in ((8, 82.4), (128, 67.0))
    ),
]

LLAMA2 = "run --world-size 8 examples/train_llama.py llama2-7b --batch 8 --seq-len 2048 --ac full --keep-logits"
LLAMA3 = "run --gpu H100-96GB --world-size {} examples/train_llama.py llama3-8b --batch 2 --seq-len 8192 --ac op"
EAGER, COMPILED = "Llama-3.1-8B, {} GPUs, selective checkpointing", "the same, each block compiled"
RECORDED = "L3_8b_w8_bs2_opAC_torchtitan_dec2024"
RECORDED_165 = "A1_llama2_7b_w8_bs8_fullAC"
NEWER = "torch 2.13 takes less than the torch of its time, see below"
RUNS = [
    Row(EAGER.format(8), "reserved", 82.4, LLAMA3.format(8), TABLE_2024, golden=RECORDED),
    Row(COMPILED, "reserved", 77.0, LLAMA3.format(8) + " --compile", TABLE_2024, golden=RECORDED + "_compiled"),
    Row(EAGER.format(128), "reserved", 67.0, LLAMA3.format(128), TABLE_2024),
    Row(COMPILED, "reserved", 62.0, LLAMA3.format(128) + " --compile", TABLE_2024),
    Row("Llama-2-7B, 8 GPUs, full checkpointing, logits kept", "active", 22.73, LLAMA2, ISSUE_165, golden=RECORDED_165),
    Row("the same", "reserved", 31.02, LLAMA2, ISSUE_165, golden=RECORDED_165, known=NEWER),
]
TABLES = {"plans": PLANS, "runs": RUNS}


@functools.cache
def peak(command: str) -> dict[str, int]:
    """The peak that the command reports. Inductor's cache is empty: autotuning changes reserved memory, and cached code is not
    autotuned."""
    build = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
    verb, *arguments = command.split()
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [str(build / "bin" / "plimsoll"), verb, "--json", "-", "--quiet", *arguments],
            cwd=HOME,
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return json.loads(done.stdout)["peak"]


def estimate(row: Row) -> float:
    """GiB of the row's book."""
    return peak(row.command)[f"{row.book}_bytes"] / 2**30


def difference(row: Row) -> float:
    """Percent of the measured value."""
    return (estimate(row) / row.measured - 1) * 100


def line(row: Row) -> str:
    """The row of the page."""
    percent = f"{difference(row):+.1f} %".replace("-", "−") + (f": {row.known}" if row.known else "")
    return f"| {row.job} | {row.book} | {row.measured:g} GiB | {estimate(row):.2f} GiB | {percent} | {row.source} |"


def table(rows: list[Row]) -> Iterator[str]:
    yield "| job | book | measured | estimated | difference | source |"
    yield "|---|---|---|---|---|---|"
    yield from map(line, rows)
    yield ""
    yield from dict.fromkeys(f"    ./plimsoll {row.command}" for row in rows)


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in TABLES.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        lines = list(table(rows))
        before, rest = text.split(begin)
        text = before + "\n".join([begin, *lines, end]) + rest.split(end)[1]
        if "--write" not in sys.argv[1:]:
            print("\n".join(lines), end="\n\n")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
