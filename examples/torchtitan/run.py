"""Runs the installed torchtitan under `plimsoll run`: the jobs of torchtitan's tables of December 2024.

    python examples/torchtitan/run.py JOB [--print] [--rank N] [more of torchtitan's own arguments…]
    python examples/torchtitan/run.py --list

`python` is an interpreter with torchtitan (0.1 or 0.2), torchao for Float8, and a CUDA build of torch. It needs no GPU
and no download. --print shows the command and does not run it. `write_assets.py` beside this file writes the tokenizer
and the training text.
"""

import argparse
import importlib.metadata
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import write_assets

HOME = Path(__file__).resolve().parents[2]
PIPELINE_8 = {"tensor_parallel_degree": 8, "pipeline_parallel_degree": 8, "enable_async_tensor_parallel": True}


class Job(NamedTuple):
    """A row of the tables; `measured` is their column Memory(GiB), the peak of reserved bytes."""

    measured: float
    gpus: int
    flavor: str
    batch: int
    checkpoint: str
    seq_len: int = 8192
    compiled: bool = False
    float8: bool = False
    parallelism: dict = {}


def _8b(measured: float, gpus: int, **options: bool) -> Job:
    return Job(measured, gpus, "8B", 2, "selective", **options)


def _context(measured: float, degree: int) -> Job:
    parallelism = {"data_parallel_shard_degree": 8 // degree, "context_parallel_degree": degree}
    return Job(measured, 8, "8B", 1, "full", 32768 * degree, True, True, parallelism)


def _70b(measured: float, **parallelism: bool) -> Job:
    return Job(measured, 256, "70B", 16, "full", 8192, True, True, {"tensor_parallel_degree": 8, **parallelism})


def _405b(measured: float, schedule: str) -> Job:
    parallelism = {**PIPELINE_8, "pipeline_parallel_schedule": schedule}
    return Job(measured, 512, "405B", 32, "full", 8192, True, True, parallelism)


JOBS = {
    "8b": _8b(82.4, 8),
    "8b-compile": _8b(77.0, 8, compiled=True),
    "8b-float8": _8b(76.8, 8, compiled=True, float8=True),
    "8b-128": _8b(67.0, 128),
    "8b-128-compile": _8b(62.0, 128, compiled=True),
    "8b-128-float8": _8b(61.8, 128, compiled=True, float8=True),
    "8b-cp1": _context(83.9, 1),
    "8b-cp2": _context(84.2, 2),
    "8b-cp4": _context(84.0, 4),
    "8b-cp8": _context(84.5, 8),
    "70b": _70b(71.9),
    "70b-async": _70b(67.6, enable_async_tensor_parallel=True),
    "405b": _405b(82.5, "1F1B"),
    "405b-interleaved": _405b(72.7, "Interleaved1F1B"),
}


def options_of(job: Job, is_old: bool, assets: Path) -> list[str]:
    """torchtitan's arguments for a job; `is_old` selects the names of torchtitan 0.1."""
    options = {
        "model.flavor": job.flavor,
        "model.tokenizer_path" if is_old else "model.hf_assets_path": assets / "tokenizer.model" if is_old else assets,
        "training.dataset": "c4_test",
        "training.dataset_path": assets / "text",
        "training.local_batch_size": job.batch,
        "training.seq_len": job.seq_len,
        "training.steps": 3,
        "metrics.log_freq": 1,
        "activation_checkpoint.mode": job.checkpoint,
        "activation_checkpoint.selective_ac_option": "op",
        **{f"parallelism.{name}": value for name, value in job.parallelism.items()},
    }
    if job.compiled and is_old:
        options["training.compile"] = True  # also the loss, which was not compiled in December 2024
    elif job.compiled:
        options.update({"compile.enable": True, "compile.components": "model"})
    if job.float8:
        section = "float8" if is_old else "quantize.linear.float8"
        options["model.converters"] = section
        options[f"{section}.enable_fsdp_float8_all_gather"] = True
        options[f"{section}.precompute_float8_dynamic_scale_for_fsdp"] = True
    arguments: list[str] = []
    for name, value in options.items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return arguments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=JOBS, metavar="JOB", nargs="?")
    parser.add_argument("--list", action="store_true", help="list the jobs with their measured memory")
    parser.add_argument("--print", action="store_true", help="show the command, run nothing")
    parser.add_argument("--rank", default=0, type=int)
    parser.add_argument("--assets", type=Path, default=Path(tempfile.gettempdir()) / "plimsoll-torchtitan")
    given, more = parser.parse_known_args()
    if given.list or given.job is None:
        for name, job in JOBS.items():
            print(f"{name:18} {job.gpus:3} GPUs, measured {job.measured} GiB reserved")
        return
    try:
        version = importlib.metadata.version("torchtitan")
    except importlib.metadata.PackageNotFoundError:
        sys.exit(f"{sys.executable} has no torchtitan: pip install torchtitan==0.2.2, and torchao for Float8")
    job = JOBS[given.job]
    command = [str(HOME / "plimsoll"), "run", "--python", sys.executable, "--gpu", "H100-96GB"]
    command += ["--world-size", str(job.gpus), "--rank", str(given.rank), "-m", "torchtitan.train"]
    command += options_of(job, version.startswith("0.1."), given.assets) + more
    print(shlex.join(command), flush=True)
    if given.print:
        return
    write_assets.write(given.assets)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
