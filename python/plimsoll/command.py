"""The `plimsoll` command of the installed package: starts the program in bin/ for this interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from plimsoll.api import installation

_RUN_TORCH = ("plan", "explain", "fit", "sweep", "run")


def main() -> int:
    """Becomes the program, so signals and exit codes are the program's. Returns only if that is not possible."""
    arguments = sys.argv[1:]
    try:
        found = installation.find()
        if found.home is None and _runs_torch(arguments):
            installation.check_torch(found)
    except installation.InstallationError as error:
        print(f"plimsoll: {error}", file=sys.stderr)
        return 2 if arguments[:1] == ["run"] else 1  # like the program: 1 under `run` would be the script's code
    os.execve(found.command, ["plimsoll", *arguments], {**os.environ, **found.variables})


def _runs_torch(arguments: Sequence[str]) -> bool:
    return bool(arguments) and arguments[0] in _RUN_TORCH and not {"-h", "--help"} & set(arguments)
