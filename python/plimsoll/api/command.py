"""Runs the plimsoll command once, and returns its document, text and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from plimsoll.api.exit_codes import ExitCode
from plimsoll.api.installation import Installation

_PATIENCE_SECONDS = 5.0

# Variables of `plimsoll run`. A process on the pretend GPU does not pass them to another run.
_OF_A_RUN = ("PLIMSOLL_RUN", "PLIMSOLL_PRETEND_DIR", "PLIMSOLL_GPU_PROFILE", "PLIMSOLL_GPUS", "PLIMSOLL_EVENT_LAG")


@dataclass(frozen=True)
class CommandOutput:
    """The output of the command. document: the JSON text, or None if it wrote none."""

    code: int
    document: str | None
    text: str
    errors: str

    def required_document(self) -> str:
        """The document. If there is none, raises ValueError for bad usage, and otherwise RuntimeError."""
        if self.document is not None:
            return self.document
        said = self.errors.strip() or self.text.strip()
        if self.code == ExitCode.BAD_USAGE:
            raise ValueError(said.removeprefix("plimsoll: "))
        ended = f"was ended by {_signal_name(-self.code)}" if self.code < 0 else f"failed with exit code {self.code}"
        raise RuntimeError(f"the plimsoll command {ended}{':' if said else ' without a message'}\n{said}".strip())


def run(
    installation: Installation,
    command: str,
    options: Sequence[str],
    rest: Sequence[str] = (),
    *,
    timeout: float | None = None,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
    worker: Path | None = None,
) -> CommandOutput:
    """`plimsoll command --json FILE options… rest…`.

    folder: the working directory (None: that of this process). env: more environment variables.
    descriptors: files that stay open, with the same numbers, in the command and its child.
    worker: a file to which the command's child may write its process id, so that a child that ignores SIGTERM can be killed.
    Raises TimeoutError after `timeout` seconds, when all processes have ended.
    """
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as temporary:
        document = Path(temporary, "document.json")
        arguments = [str(installation.command), command, "--json", str(document), *options, *rest]
        environment = {**_outside_of_a_run(os.environ), **installation.variables, **(env or {})}
        # Files need no reader while the command runs, and a grandchild that keeps one open does not block us.
        with open(Path(temporary, "text"), "w+b") as out, open(Path(temporary, "errors"), "w+b") as err:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=environment,
                pass_fds=tuple(descriptors),
            )
            try:
                code = process.wait(timeout)
            except BaseException as reason:
                _end(process, worker)
                if isinstance(reason, subprocess.TimeoutExpired):
                    raise TimeoutError(f"plimsoll {command} took more than {timeout} seconds") from None
                raise
            return CommandOutput(code, document.read_text() if document.exists() else None, _text(out), _text(err))


def print_errors(errors: str) -> None:
    """Prints the messages of the command to standard error."""
    if errors:
        sys.stderr.write(errors)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _end(process: subprocess.Popen[bytes], worker: Path | None) -> None:
    """Ends the command and its child. The command passes SIGTERM on; a child that ignores it is killed."""
    for end in (process.terminate, lambda: _kill(worker), process.kill):
        end()
        try:
            process.wait(_PATIENCE_SECONDS)
            return
        except subprocess.TimeoutExpired:
            pass


def _kill(worker: Path | None) -> None:
    try:
        if worker is not None:
            os.kill(int(worker.read_text()), signal.SIGKILL)
    except (OSError, ValueError):  # the child has not written its id
        pass


def _outside_of_a_run(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables of this process's pretend GPU."""
    result = {name: value for name, value in environment.items() if name not in _OF_A_RUN}
    libraries = environment.get("PLIMSOLL_PRETEND_DIR")
    if libraries:
        _keep(result, "LD_PRELOAD", lambda path: os.path.dirname(path) != libraries.rstrip("/"))
        activation = os.path.join("plimsoll", "run", "process", "activation")
        _keep(result, "PYTHONPATH", lambda path: not path.endswith(activation))
    return result


def _keep(environment: dict[str, str], name: str, wanted: Callable[[str], bool]) -> None:
    parts = [part for part in environment.get(name, "").split(":") if part and wanted(part)]
    environment.pop(name, None)
    if parts:
        environment[name] = ":".join(parts)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
