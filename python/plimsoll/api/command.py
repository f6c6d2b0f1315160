"""Runs the plimsoll command once: a document, a text, and what went wrong."""

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

# What `plimsoll run` sets for a process on the pretend GPU, where this is one: the next run begins without.
_OF_A_RUN = ("PLIMSOLL_RUN", "PLIMSOLL_PRETEND_DIR", "PLIMSOLL_GPU_PROFILE", "PLIMSOLL_GPUS", "PLIMSOLL_EVENT_LAG")


@dataclass(frozen=True)
class Answer:
    """What the command left. document: the JSON text, None where it wrote none."""

    code: int
    document: str | None
    text: str
    errors: str

    def required_document(self) -> str:
        """The document; raises ValueError for bad usage and RuntimeError for everything else that left none."""
        if self.document is not None:
            return self.document
        said = self.errors.strip() or self.text.strip()
        if self.code == ExitCode.BAD_USAGE:
            raise ValueError(said.removeprefix("plimsoll: "))
        ended = f"was ended by {_signal_name(-self.code)}" if self.code < 0 else f"failed with exit code {self.code}"
        raise RuntimeError(f"the plimsoll command {ended}{':' if said else ' and said nothing'}\n{said}".strip())


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
) -> Answer:
    """`plimsoll command --json FILE options… rest…`.

    folder: the working directory, where it is not this process's. env: variables beside this process's.
    descriptors: further files that the command and its child have open, by the same numbers.
    worker: a file that may come to hold the id of the command's child, for one that does not end when it is asked to.
    Raises TimeoutError after `timeout` seconds; nothing is left running then.
    """
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as temporary:
        document = Path(temporary, "document.json")
        arguments = [str(installation.command), command, "--json", str(document), *options, *rest]
        environment = {**_outside_of_a_run(os.environ), **installation.variables, **(env or {})}
        # Files, not pipes: nobody has to read while it runs, and a grandchild that stays keeps nobody waiting.
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
            return Answer(code, document.read_text() if document.exists() else None, _text(out), _text(err))


def tell(errors: str) -> None:
    """What the command had to say beside its answer goes where it would have gone."""
    if errors:
        sys.stderr.write(errors)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _end(process: subprocess.Popen[bytes], worker: Path | None) -> None:
    """The command passes SIGTERM on to its child, and ends with it; a child that does not listen is killed first."""
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
    except (OSError, ValueError):  # it has not come to say who it is
        pass


def _outside_of_a_run(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what belongs to the pretend GPU of this process, where it has one."""
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
