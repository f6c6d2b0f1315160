"""Jobs that `plimsoll plan` runs in C++, and the same jobs as a Python script under `plimsoll run`."""

import json
import subprocess
from pathlib import Path
from typing import Any

from needs import BUILD, HOME, why_not

PLANNER = BUILD / "bin" / "plimsoll-planner"
SCRIPT = HOME / "examples" / "train_language_model.py"
PROFILES = HOME / "src" / "plimsoll" / "pretend" / "profiles"
FLAGS = ("accum_no_sync", "keep_logits")  # flags that take no value in the script

Job = dict[str, Any]


def why_no_plan() -> str | None:
    return why_not(PLANNER, cuda=True)


def answers(jobs: list[Job], profile: Path, parallel: int = 1, **wanted: Any) -> list[dict[str, Any]]:
    """The planner's answer for each job, in the order of the jobs."""
    requests = [
        {"id": i, "job": job, "profile": str(profile), "depth": 9, "log": None, "snapshot": None, **wanted}
        for i, job in enumerate(jobs)
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([PLANNER, str(parallel)], input=lines, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    return [found[i] for i in range(len(jobs))]


def plan(job: Job, profile: Path = PROFILES / "H100-80GB.json", **wanted: Any) -> dict[str, Any]:
    (answer,) = answers([job], profile, **wanted)
    assert "report" in answer, answer
    return answer["report"]


def script_arguments(job: Job) -> list[str]:
    """The options of `plimsoll run`, the script and the script's options for a job."""
    job = dict(job)
    arguments = ["--world-size", str(job.pop("gpus")), "--rank", str(job.pop("rank", 0))]
    if "alloc_conf" in job:
        arguments += ["--alloc-conf", job.pop("alloc_conf")]
    arguments += [str(SCRIPT), job.pop("model")]
    for name, value in job.items():
        flag = "--" + name.replace("_", "-")
        if name in FLAGS:
            arguments += [flag] if value else []
        else:
            arguments += [flag, str(value).lower() if isinstance(value, bool) else str(value)]
    return arguments
