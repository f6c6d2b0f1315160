"""`estimate`: what `plimsoll run` says of a function, or of a script."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plimsoll.api import command, installation, main_module, output
from plimsoll.api import payload as sending
from plimsoll.api.amounts import text_of
from plimsoll.api.parts import CodeLine, ScriptError, Step
from plimsoll.api.payload import Callee, Payload
from plimsoll.api.result import Result
from plimsoll.document_fields import REPORT

_CHILD = "plimsoll.api.child"


class Estimate(Result):
    """What a function, or a script, took of a GPU. What all results have is said in Result; beside it:

    function         its name
    world_size, rank where it was told that it runs
    after_steps      peaks of what came after the last step (parts.Step), or None
    finished_steps   number of steps that ended
    top              live allocations at the peak by line of code (parts.CodeLine), largest first
    read_backs       number of values that were read from the device, which were zeros
    read_back_lines  the lines that did (parts.CodeLine)
    host_pinned      bytes of pinned memory at their highest
    error            the exception that it ended with (parts.ScriptError), or None; also where memory ran out
    exit_code        of a script
    stdout, stderr   what it printed, where that was captured; else empty
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

    estimate: what was seen until then, or None. type, traceback: of the exception, as text, or None.
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
    timeout: float | None = None,
    python: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    capture: bool = False,
    **kwargs: Any,
) -> Estimate:
    """What a function of yours takes of a GPU that is not there.

    `fn(*args, **kwargs)` is called in a process of its own, under `plimsoll run`: with the real CUDA build of torch on a
    pretend GPU, as one rank of as many as you like. This process needs no torch and no GPU, and is not changed.

    fn: a function. One of a module is found by its name; one of a script too, for which the script is run once more, under
        another name than "__main__", as multiprocessing does: so a call of `estimate` in a script stands below
        `if __name__ == "__main__":`. Functions of notebooks, lambdas and closures are sent as they are, if cloudpickle
        is installed. Also the path of a script (it ends in .py, or is a pathlib.Path), with `args` as its command line; or
        "package.module:function", which is not imported here.
    args, kwargs: for the function; what can be pickled. Where the function has a keyword that is one of those below, give it
        with functools.partial.
    world_size, rank, gpus_per_node: the job, the rank of it that is run, and cards in one machine (8, and not more than there
        are ranks).
    gpu, gpu_memory: the card, a name of `plimsoll gpus` or the path of a profile, and another amount of memory than it has,
        as "40GiB" or in bytes.
    steps: end the run after so many optimizer steps.
    alloc_conf: PYTORCH_ALLOC_CONF, as in "expandable_segments:True".
    depth: list modules of so many parts of a path.
    timeout: seconds after which to give up with TimeoutError.
    python: the interpreter that runs it; it must have a CUDA build of torch. None: this one.
    env: variables of its environment, beside this process's.
    capture: keep what the function prints for the result's stdout and stderr, instead of passing it on.

    Running out of memory is an answer: `fits` is False. Raises EstimateError where the function raises anything else, or
    ends with an exit code; TypeError, ValueError or FileNotFoundError for what cannot be sent, is refused, or is not there;
    InstallationError where plimsoll or a CUDA build of torch is missing.

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
    if python is None:
        installation.check_torch(found)
    options = [
        f"--world-size={world_size}",
        f"--rank={rank}",
        f"--gpu={os.fspath(gpu)}",
    ]
    if gpus_per_node is not None:
        options.append(f"--gpus-per-node={gpus_per_node}")
    if gpu_memory is not None:
        options.append(f"--gpu-memory={gpu_memory}")
    if steps is not None:
        options.append(f"--steps={steps}")
    if alloc_conf is not None:
        options.append(f"--alloc-conf={alloc_conf}")
    if depth != 2:
        options.append(f"--depth={depth}")
    if python is not None or not found.python_is_own():
        options.append(f"--python={os.fspath(python) if python is not None else sys.executable}")

    with tempfile.TemporaryDirectory(prefix="plimsoll-") as temporary:
        folder = Path(temporary)
        with output.stdout(capture) as out, output.stderr(capture) as err:
            payload = Payload(_name_of(fn), temporary, out.descriptor, err.descriptor)
            sending.fill(payload, fn, args, kwargs, same_python=python is None)
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
    command.tell(answer.errors)
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
