"""Finds the plimsoll command and checks its requirements."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
TORCH = "2.13.0"


class InstallationError(RuntimeError):
    """A requirement of plimsoll is missing on this machine. The message has a remedy."""


@dataclass(frozen=True)
class Installation:
    """One plimsoll on this machine.

    home: the folder of the sources; None in an installed wheel.
    command: the program.
    """

    home: Path | None
    command: Path

    @property
    def variables(self) -> dict[str, str]:
        """The variables that the command needs in its environment."""
        if self.home is not None:
            return {"PLIMSOLL_HOME": str(self.home)}
        return {"PLIMSOLL_PYTHON": sys.executable}

    @property
    def own_python(self) -> Path | None:
        """The command's default interpreter. None: this one."""
        return self.home / ".plimsoll" / "venv" / "bin" / "python" if self.home is not None else None

    def python_is_own(self) -> bool:
        """True if this process runs the command's default interpreter."""
        return self.home is None or _same(Path(sys.prefix), self.home / ".plimsoll" / "venv")


def find() -> Installation:
    """Looks in PLIMSOLL_HOME if it is set, or else in the source tree around this package, or else in the installed wheel.

    Raises InstallationError if the command is missing, or if the platform is not supported.
    """
    _check_platform()
    named = os.environ.get("PLIMSOLL_HOME")
    sources = PACKAGE.parent.parent
    if named:
        home: Path | None = Path(named)
    else:
        home = sources if (sources / "CMakeLists.txt").is_file() else None
    if home is not None:
        command = home / "build" / "release" / "bin" / "plimsoll"
        found_by = f"PLIMSOLL_HOME is {home}, but there" if named else "There"
        todo = f"run ./plimsoll in {home} once, which builds it"
        todo += ", or unset PLIMSOLL_HOME" if named else ""
    else:
        command = PACKAGE / "bin" / "plimsoll"
        found_by = "There"
        todo = "run `pip install .` in plimsoll's source tree, or `./plimsoll` there, which builds it"
    if not os.access(command, os.X_OK) or not command.is_file():
        raise InstallationError(f"{found_by} is no plimsoll command at {command}: {todo}.")
    return Installation(home, command)


def check_torch(installation: Installation) -> None:
    """Raises InstallationError if this interpreter has no torch, or only a CPU build."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        problem = f"{sys.executable} has no torch"
    elif not (Path(found.origin).parent / "lib" / "libtorch_cuda.so").exists():
        problem = "this torch is a CPU build"
    else:
        return
    other = installation.own_python
    raise InstallationError(
        f"{problem}; the pretend GPU needs a CUDA build of torch {TORCH} — no GPU is needed: "
        f"pip install torch==={TORCH} --index-url https://pypi.org/simple"
        + (f", or use the interpreter that has one: {other}" if other is not None and other.exists() else "")
    )


def _check_platform() -> None:
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        raise InstallationError(f"plimsoll runs on Linux on x86-64; this is {system} on {machine}.")


def _same(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except OSError:
        return False
