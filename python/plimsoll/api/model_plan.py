"""`plan`: the command `plimsoll plan` as a function."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.api import command, installation
from plimsoll.api.job_flags import JobFlags
from plimsoll.api.model_argument import Model, resolve
from plimsoll.api.result import Result
from plimsoll.document_fields import REPORT

if TYPE_CHECKING:
    from typing_extensions import Unpack

FilePath = str | os.PathLike[str]


class Plan(Result):
    """The result of `plan`: a Result with these attributes too.

    model           the model, as the caller named it
    parameters      the number of parameters, before sharding
    job             every setting, with the defaults
    host            peak bytes on the CPU; host_pinned: the pinned part of them
    """

    def __init__(self, document: str, text: str, label: str) -> None:
        super().__init__(document, text)
        self.model = label
        self.parameters: int = self._values["model"]["parameters"]
        self.job: dict[str, Any] = dict(self._values["job"])
        self.host: int = self._values[REPORT["host"]]
        self.host_pinned: int = self._values[REPORT["host_pinned"]]

    @property
    def name(self) -> str:
        return self.model


def plan(
    model: Model | None = None,
    *,
    job: FilePath | None = None,
    depth: int | None = None,
    reserve: str | int | None = None,
    timeout: float | None = None,
    **flags: Unpack[JobFlags],
) -> Plan:
    """Tells whether the training of a language model fits on a GPU, and where every byte goes.

    Starts `plimsoll plan`, which trains the model for two steps on the pretend GPU; this takes about a second.

    model: a name that `plimsoll models` lists, the path of a config.json (or of a folder with one), a dict like one, or a
        configuration of transformers. None: the job file names the model.
    job: a TOML file with the settings of the job, ours or torchtitan's; keywords win over it.
    depth: depth of the module table (2).
    reserve: memory that must be left for the verdict that it fits, as "2GiB" or in bytes (0).
    timeout: seconds until TimeoutError (None: no limit).
    flags: the flags of a job: gpus=8, seq_len=4096, checkpoint="full", … `plimsoll plan --help` describes them, JobFlags
        has their types. A keyword that is None counts as not given.

    Raises ValueError with the command's message if the command refuses the job, InstallationError if plimsoll is not
    installed completely, and RuntimeError with the command's output if the command fails.

    >>> from plimsoll.api import plan
    >>> small = plan("gpt2", gpus=8, batch=4)
    >>> small.fits, small.barely, small.steps[1].step
    (True, False, 1)
    >>> plan("gpt2", reserve="80GiB").judgement.outcome
    'too little left'
    >>> sum(small.categories.values()) == small.peak.active
    True
    >>> plan("llama3-8b", gpus=8, gpu="A100-40GB", checkpoint="full", batch=8).fits
    False
    >>> tiny = {"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "n_positions": 128, "vocab_size": 1000}
    >>> plan(tiny).parameters
    172288
    >>> plan("gpt2", batch=0)
    Traceback (most recent call last):
    ValueError: --batch expects a whole number from 1 to 2147483647, found '0': that is too small
    """
    if model is None and job is None:
        raise ValueError("plan() needs a model, or a job file that names one: plan('llama3-8b', gpus=8)")
    unknown = sorted(set(flags) - set(JobFlags.__annotations__))
    if unknown:
        raise TypeError(f"plan() has no keyword {unknown[0]!r}: `plimsoll plan --help` lists them")
    options: dict[str, Any] = {
        "job": None if job is None else os.path.abspath(job),
        **flags,
        "depth": depth,
        "reserve": reserve,
    }
    if options.get("gpu") is not None:
        options["gpu"] = _absolute_profile(options["gpu"])
    found = installation.find()
    if found.home is None:
        installation.check_torch(found)
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as temporary:
        folder = Path(temporary)
        named = resolve(model, folder) if model is not None else None
        is_written = (folder / "config.json").exists()
        answer = command.run(
            found,
            "plan",
            [_flag(name, value) for name, value in options.items() if value is not None],
            [named.argument] if named is not None else [],
            timeout=timeout,
            folder=folder if is_written else None,
        )
    document = answer.required_document()
    command.print_errors(answer.errors)
    result = Plan(document, answer.text, named.label if named is not None else "")
    result.model = result.model or str(result.to_dict()["model"]["name"])
    return result


def _flag(name: str, value: object) -> str:
    text = (
        str(value).lower() if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else value
    )
    return f"--{name.replace('_', '-')}={text}"


def _absolute_profile(gpu: FilePath) -> str:
    """The path of the user's own profile must be absolute: the command may start in another folder."""
    text = os.fspath(gpu)
    return os.path.abspath(text) if text.endswith(".json") else text
