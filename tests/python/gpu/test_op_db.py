"""Each operator of torch's own op database has the same form on the pretend GPU as on the CPU, forward and backward.

`op_db/differences.json` lists, by dtype, the operators that differ, each with its reason. The result depends on the data, which a
read-back gives as zeros; or torch's CUDA code refuses input that its CPU code accepts; or torch's CUDA code gives another form than
its CPU code, as torch's own fake tensors predict. A listed operator that passes is a failure too: the list must stay true. To look
at one operator:

    plimsoll run tests/python/gpu/op_db/runner.py FIRST LAST float32 out.jsonl

The tests use the pretend GPU without `plimsoll run`, because its observer is not under test.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import needs
import pytest

WHY_NOT = needs.why_not(needs.PRETEND, cuda=True)
pytestmark = [pytest.mark.recorded, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]

HERE = Path(__file__).parent / "op_db"
LISTED: dict[str, Any] = json.loads((HERE / "differences.json").read_text())
PREDICTED: dict[str, dict[str, str]] = LISTED.pop("as predicted for CUDA")
REFUSED: dict[str, dict[str, str]] = LISTED.pop("refused by torch's CUDA build")
FOR_THE_CPU: dict[str, dict[str, str]] = LISTED.pop("in some samples for the CPU alone")
ENOUGH = 0.98
AS_ON_THE_CPU = {"float32": 636 / 651, "bfloat16": 518 / 525}  # without a prediction; together 98.1 %
ATTENTION = "nn.functional.scaled_dot_product_attention"
ALGORITHMS = {
    "float32": {"efficient"},
    "bfloat16": {"flash", "efficient", "cuDNN"},
}  # operators that compute in that dtype


def run_all(out: Path, dtype: str) -> list[dict[str, Any]]:
    """A report for each operator. A crash ends the process and counts as a report; the next process continues after it."""
    reports: list[dict[str, Any]] = []
    first = 0
    folder = str(needs.PRETEND)
    env = {
        **os.environ,
        **needs.pretend_gpu(),
        "PLIMSOLL_PRETEND_DIR": folder,
        "TRITON_LIBCUDA_PATH": folder,
        "OMP_NUM_THREADS": "1",
    }
    while True:
        out.unlink(missing_ok=True)
        command = needs.python(HERE / "runner.py", first, "10000", dtype, out)
        done = subprocess.run(command, cwd=out.parent, env=env, capture_output=True, text=True, timeout=1200)
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        reports += [line for line in lines if "number" in line]
        if lines and "count" in lines[-1]:
            return reports
        assert lines and "started" in lines[-1], done.stderr
        crashed = lines[-1]
        reports.append(
            {
                "number": crashed["started"],
                "op": crashed["op"],
                "variant": "",
                "crash": done.returncode,
                "samples": 0,
                "problems": [f"the process died with code {done.returncode}"],
            }
        )
        first = crashed["started"] + 1


def name_of(report: dict[str, Any]) -> str:
    return " ".join(filter(None, (report["op"], report["variant"])))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_operators_have_the_form_of_the_cpus(tmp_path, dtype):
    pytest.importorskip("expecttest", reason="torch's op database needs expecttest")
    reports = run_all(tmp_path / "out.jsonl", dtype)
    tried = {name_of(report): report for report in reports if report.get("samples") or report.get("problems")}
    assert len(tried) > 500
    assert not [name for name, report in tried.items() if "crash" in report]

    listed = LISTED[dtype]
    failed = {name: report["problems"][0] for name, report in tried.items() if report["problems"]}
    assert not {name: problem for name, problem in failed.items() if name not in listed}, "differ and are not listed"
    assert not listed.keys() - failed.keys(), "are listed and pass"

    predicted = {name for name, report in tried.items() if report.get("as_fake")}
    assert not predicted ^ PREDICTED[dtype].keys(), (
        "are listed as predicted for CUDA and are not so, or are so and not listed"
    )

    refused = {name_of(report) for report in reports if report.get("refused")}
    assert not refused ^ REFUSED[dtype].keys(), (
        "are listed as refused by torch's CUDA build and are not so, or are so and not listed"
    )
    for_the_cpu = {name_of(report) for report in reports if report.get("for_the_cpu")}
    assert not for_the_cpu ^ FOR_THE_CPU[dtype].keys(), (
        "are listed as in some samples for the CPU alone and are not so, or the reverse"
    )
    assert tried[ATTENTION]["algorithms"].keys() == ALGORITHMS[dtype]

    data_dependent = {name for name, report in tried.items() if report.get("reads")}
    comparable = tried.keys() - data_dependent
    assert len(comparable - failed.keys() - predicted - refused) >= AS_ON_THE_CPU[dtype] * len(comparable)
    assert len(comparable - failed.keys()) >= ENOUGH * len(comparable)
