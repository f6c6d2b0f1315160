#!/usr/bin/env python3
"""Plans beside what others measured on real GPUs: runs `plimsoll plan` for each row and keeps the table in
docs/accuracy.md.

    scripts/accuracy.py           prints the table
    scripts/accuracy.py --write   puts it into docs/accuracy.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple

HOME = Path(__file__).resolve().parents[1]
PAGE = HOME / "docs" / "accuracy.md"
BEGIN, END = "<!-- plans: begin -->", "<!-- plans: end -->"


class Row(NamedTuple):
    job: str
    book: str  # "active" or "reserved"
    measured: float  # GiB
    within: float  # percent; what is promised
    flags: str
    source: str


ISSUE_165 = "torchtitan issue 165, March 2024"
TABLE_2024 = "torchtitan's table of December 2024"
LLAMA2 = "llama2-7b --gpus 8 --batch 8 --seq-len 2048 --checkpoint full --keep-logits"
LLAMA3 = "llama3.1-8b --batch 2 --seq-len 8192 --checkpoint selective --gpu H100-96GB"
ROWS = [
    Row("Llama-2-7B, 8 GPUs, full checkpointing, logits kept", "active", 22.73, 0.5, LLAMA2, ISSUE_165),
    Row("Llama-3.1-8B, 8 GPUs, selective checkpointing", "reserved", 82.4, 2.0, LLAMA3 + " --gpus 8", TABLE_2024),
    Row("Llama-3.1-8B, 128 GPUs, selective checkpointing", "reserved", 67.0, 2.0, LLAMA3 + " --gpus 128", TABLE_2024),
]


def command() -> str:
    build = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
    return str(build / "bin" / "plimsoll")


def planned(row: Row) -> float:
    """GiB of the row's book."""
    done = subprocess.run(
        [command(), "plan", *row.flags.split(), "--json", "-"],
        env={**os.environ, "PLIMSOLL_HOME": str(HOME)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
    )
    return json.loads(done.stdout)["peak"][f"{row.book}_bytes"] / 2**30


def difference(row: Row, estimate: float) -> float:
    """In percent of what was measured."""
    return (estimate / row.measured - 1) * 100


def table(rows: List[Row]) -> Iterator[str]:
    yield "| job | book | measured | estimated | difference | source |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        estimate = planned(row)
        percent = f"{difference(row, estimate):+.1f} %".replace("-", "−")
        yield f"| {row.job} | {row.book} | {row.measured:g} GiB | {estimate:.2f} GiB | {percent} | {row.source} |"
    yield ""
    yield from (f"    ./plimsoll plan {row.flags}" for row in rows)


def main() -> None:
    lines = list(table(ROWS))
    if "--write" not in sys.argv[1:]:
        print("\n".join(lines))
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + "\n".join([BEGIN, *lines, END]) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
