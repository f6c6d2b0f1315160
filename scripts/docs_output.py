#!/usr/bin/env python3
"""Runs the commands of a document and replaces their output in it.

    scripts/docs_output.py docs/questions.md

A command is a line in a fenced block that begins with "$ ". The lines after it, up to the next command or the end of the
block, are its output. bash runs the commands one after the other in the project's folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]


def output_of(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=HOME,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,  # Warnings of torch on stderr are not the answer.
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        sys.exit(f"{command}\n{done.stdout}ended with {done.returncode}")
    return done.stdout.rstrip("\n")


def refreshed(lines: list[str]) -> Iterator[str]:
    in_block = skipping = False
    for line in lines:
        if line.startswith("```"):
            in_block, skipping = not in_block, False
        if in_block and line.startswith("$ "):
            skipping = True
            print(line, file=sys.stderr)
            yield line
            text = output_of(line[2:])
            if text:
                yield text
        elif not skipping:
            yield line


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        text = "\n".join(refreshed(path.read_text(encoding="utf-8").splitlines())) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
