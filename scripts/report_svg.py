#!/usr/bin/env python3
"""Draws the output of a command as an SVG picture of a terminal.

    scripts/report_svg.py           prints the picture of README.md
    scripts/report_svg.py --write   writes it to docs/report.svg

Times differ from run to run, so the picture has none: "0.7 s" at the end of a line is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
PICTURE = HOME / "docs" / "report.svg"
COMMAND = ["./plimsoll", "plan", "llama3-8b", "--gpus", "8", "--checkpoint", "selective"]

CHARACTER, LINE, MARGIN = 8.4, 19, 16  # pixels: width of a character, height of a line, border
BAR = re.compile(r"[█▉▊▋▌▍▎▏░▒▓]+")
SECONDS = re.compile(r",? *\b\d+\.\d s$")


def report() -> list[str]:
    """The lines of the report, as a UTF-8 terminal of 80 columns shows them."""
    command = [os.environ.get("PLIMSOLL", COMMAND[0]), *COMMAND[1:]]
    variables = {**os.environ, "PLIMSOLL_BARS": "unicode"}
    done = subprocess.run(command, cwd=HOME, env=variables, check=True, capture_output=True, encoding="utf-8")
    return [SECONDS.sub("", line) for line in done.stdout.rstrip("\n").split("\n")]


def text_of(line: str) -> str:
    """One line as SVG text; bars have a colour."""
    parts, end = [], 0
    for bar in BAR.finditer(line):
        parts += [escape(line[end : bar.start()]), f'<tspan class="bar">{bar[0]}</tspan>']
        end = bar.end()
    return "".join([*parts, escape(line[end:])])


def picture(lines: list[str]) -> str:
    lines = ["$ " + " ".join(COMMAND), *lines]
    width = round(max(map(len, lines)) * CHARACTER + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + 14 + row * LINE}" xml:space="preserve">{text_of(line)}</text>'
        for row, line in enumerate(lines)
    ]
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9}"
        ".bar{fill:#88c0d0}rect{fill:#20242c}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
            f"<title>{escape(lines[0])}</title>",
            f"<style>{style}</style>",
            f'<rect width="{width}" height="{height}" rx="6"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def main() -> None:
    drawn = picture(report())
    if sys.argv[1:] == ["--write"]:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        sys.stdout.write(drawn)


if __name__ == "__main__":
    main()
