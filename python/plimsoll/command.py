"""The `plimsoll` command of the installed package: the program in bin/, told which interpreter it belongs to."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from plimsoll.api import installation

_RUN_TORCH = ("plan", "explain", "fit", "sweep", "run")


def main() -> int:
    """Becomes the program, so that signals and exit codes are its own; returns only where that cannot be."""
    arguments = sys.argv[1:]
    try:
        found = installation.find()
        if found.home is None and _runs_torch(arguments):
            installation.check_torch(found)
    except installation.InstallationError as error:
        print(f"plimsoll: {error}", file=sys.stderr)
        return 2 if arguments[:1] == ["run"] else 1  # as the program itself: 1 under `run` would be the script's
    os.execve(found.command, ["plimsoll", *arguments], {**os.environ, **found.variables})


def _runs_torch(arguments: Sequence[str]) -> bool:
    return bool(arguments) and arguments[0] in _RUN_TORCH and not {"-h", "--help"} & set(arguments)
