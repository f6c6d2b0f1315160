"""`estimate`: the report of `plimsoll run` for a function or a script."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plimsoll.amounts import text_of
from plimsoll.api import command, installation, main_module, output
from plimsoll.api import payload as sending
from plimsoll.api.parts import CodeLine, ScriptError, Step
from plimsoll.api.payload import Callee, Payload
from plimsoll.api.result import Result
from plimsoll.document_fields import REPORT

_CHILD = "plimsoll.api.child"


class Estimate(Result):
    """The memory of a function or script on a GPU. It has all fields of Result, and:

    function         its name
    world_size, rank of the run
    after_steps      peaks after the last step (parts.Step), or None
    finished_steps   number of finished steps
    top              live allocations at the peak by line of code (parts.CodeLine), largest first
    read_backs       number of read-backs, whose values were zeros
    read_back_lines  the lines with read-backs (parts.CodeLine)
    host_pinned      peak of pinned host memory, in bytes
    error            the exception that ended it (parts.ScriptError), or None; also set if memory ran out
    exit_code        of a script
    stdout, stderr   its output if `capture` was set, else empty
    """

    def __init__(self, document: str, text: str, function: str, stdout: str = "", stderr: str = "") -> None:
        super().__init__(document, text.replace(f"  {_CHILD}, ", f"  {function}, ", 1).lstrip("\n"))
        values = self._values
        self.function = function
        self.world_size: int = values["world_size"]
        self.rank: int = values["rank"]
        self.after_steps = Step.read(values["after_steps"]) if values["after_steps"] else None
        self.finished_steps: int = values["finished_steps"]
        self.top = [CodeLine.read(line) for line in values["top"]]
        self.read_backs: int = values["read_backs"]
        self.read_back_lines = [CodeLine.read(line) for line in values["read_back_lines"]]
        self.host_pinned: int = values[REPORT["host_pinned"]]
        error = values["error"]
        self.error = ScriptError(error["type"], error["message"]) if error else None
        self.exit_code: int = values["exit_code"]
        self.stdout = stdout
        self.stderr = stderr

    @property
    def name(self) -> str:
        return self.function

    def explain(self) -> str:
        if self.judgement.outcome == "no verdict":
            return self.verdict
        lines = [super().explain()]
        if not self.causes and not self.categories and self.top:
            lines.append("Largest live allocations at the peak, by line of code:")
            lines += [f"  {text_of(line.bytes)} at {line.place}: {line.code or ''}".rstrip(" :") for line in self.top]
        if self.oom is not None and self.oom.file:
            lines.append(f"Memory ran out at {self.oom.file}:{self.oom.line}: {self.oom.code or ''}".rstrip(" :"))
        return "\n".join(lines)


class EstimateError(RuntimeError):
    """The function raised, or its process died. The text has the child's traceback.

    estimate: the report up to that point, or None. type, traceback: of the exception, as text, or None.
    """

    def __init__(
        self, message: str, estimate: Estimate | None = None, type: str | None = None, traceback: str | None = None
    ) -> None:
        super().__init__(message)
        self.estimate = estimate
        self.type = type
        self.traceback = traceback


def estimate(
    fn: Callee,
    *args: Any,
    world_size: int = 1,
    rank: int = 0,
    gpu: str | os.PathLike[str] = "H100-80GB",
    gpu_memory: str | int | None = None,
    gpus_per_node: int | None = None,
    steps: int | None = None,
    alloc_conf: str | None = None,
    depth: int = 2,
    reserve: str | int | None = None,
    timeout: float | None = None,
    python: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    capture: bool = False,
    **kwargs: Any,
) -> Estimate:
    """The GPU memory of a function, without a GPU.

    Calls `fn(*args, **kwargs)` in a separate process under `plimsoll run`: with the real CUDA build of torch on a pretend GPU, as
    one rank of any world size. This process needs no torch and no GPU, and does not change.

    fn: one of these:
        - a function of a module, found by its name. For a function of a script, the script runs again under another name than
          "__main__", as with multiprocessing: put the call of `estimate` below `if __name__ == "__main__":`.
        - a function of a notebook, a lambda or a closure, sent by value if cloudpickle is installed.
        - the path of a script (it ends in .py, or is a pathlib.Path), with `args` as its command line.
        - "package.module:function", which is not imported here.
    args, kwargs: for the function; they must be picklable. If the function has a keyword with a name from below, use
        functools.partial.
    world_size, rank, gpus_per_node: the job, the rank that runs, and the GPUs per node (8, at most the world size).
    gpu, gpu_memory: the card as a name of `plimsoll gpus` or the path of a profile, and another memory size than the card's, as
        "40GiB" or in bytes.
    steps: end the run after this number of optimizer steps.
    alloc_conf: PYTORCH_ALLOC_CONF, as in "expandable_segments:True".
    depth: depth of the module table (0: only the root).
    reserve: memory that must be left for the verdict that it fits, as "2GiB" or in bytes (0).
    timeout: raise TimeoutError after this number of seconds.
    python: the interpreter for the run, with a CUDA build of torch. None: this one.
    env: variables for its environment, in addition to this process's.
    capture: keep the function's output in the result's stdout and stderr instead of passing it on.

    Running out of memory is an answer: `fits` is False. Raises EstimateError if the function raises another exception or ends with
    an exit code; TypeError, ValueError or FileNotFoundError for invalid arguments; InstallationError if plimsoll or a CUDA build
    of torch is missing.

    >>> from plimsoll.api import estimate
    >>> one = estimate("torch:empty", 1 << 30, device="cuda")  # 2**30 numbers of 4 bytes
    >>> one.fits, one.peak.active >> 30
    (True, 4)
    >>> estimate("torch:empty", 1 << 40, device="cuda", gpu="A100-40GB").fits
    False
    """
    if main_module.is_being_run_again():
        raise RuntimeError(
            "estimate() is called while the main module is run again in the process with the pretend GPU, to find a "
            'function of it: put the call below `if __name__ == "__main__":`'
        )
    found = installation.find()
    same_python = python is None
    if same_python:
        installation.check_torch(found)
        if not found.python_is_own():
            python = sys.executable
    values = {
        "world-size": world_size,
        "rank": rank,
        "gpu": os.fspath(gpu),
        "gpus-per-node": gpus_per_node,
        "gpu-memory": gpu_memory,
        "steps": steps,
        "alloc-conf": alloc_conf,
        "depth": depth,
        "reserve": reserve,
        "python": python,
    }
    options = [f"--{name}={value}" for name, value in values.items() if value is not None]

    with tempfile.TemporaryDirectory(prefix="plimsoll-") as temporary:
        folder = Path(temporary)
        with output.stdout(capture) as out, output.stderr(capture) as err:
            payload = Payload(_name_of(fn), temporary, out.descriptor, err.descriptor)
            sending.fill(payload, fn, args, kwargs, same_python=same_python)
            payload.write(folder / "payload")
            answer = command.run(
                found,
                "run",
                options,
                ["-m", _CHILD, str(folder / "payload")],
                timeout=timeout,
                env=env,
                descriptors=(out.descriptor, err.descriptor),
                worker=folder / "pid",
            )
        document = answer.required_document()
        failure = folder / "failure.json"
        said = json.loads(failure.read_text()) if failure.exists() else None
        began = (folder / "pid").exists()
    result = Estimate(document, answer.text, payload.name, out.text(), err.text())
    if not began:
        raise RuntimeError(f"the process with the pretend GPU did not start:\n{(answer.errors + answer.text).strip()}")
    command.print_errors(answer.errors)
    _raise_failure(result, said)
    return result


def _name_of(fn: Callee) -> str:
    if isinstance(fn, (str, os.PathLike)):
        return os.fspath(fn)
    return str(
        getattr(fn, "__qualname__", None) or getattr(getattr(fn, "func", fn), "__qualname__", type(fn).__qualname__)
    )


def _raise_failure(result: Estimate, said: dict[str, str] | None) -> None:
    if result.fits is False:
        return
    name = result.function
    if said is not None:
        what = (
            f"{name} raised {said['type']}" if said["stage"] == "call" else f"{name} could not be loaded in the child"
        )
        raise EstimateError(f"{what}:\n{said['traceback'].rstrip()}", result, said["type"], said["traceback"])
    killed = result.to_dict()["signal"]
    if killed is not None:
        raise EstimateError(f"{name} was ended by {signal.Signals(killed).name}", result)
    if result.exit_code != 0:
        raise EstimateError(f"{name} ended with exit code {result.exit_code}", result)
