"""The observer changes nothing: golden runs give the same statistics to the script, and the same peaks to us."""

import json
import os
from pathlib import Path

import pytest

GOLDEN = Path(os.environ.get("PLIMSOLL_GOLDEN", Path(__file__).resolve().parents[3] / "shared" / "golden")) / "training"
BOOKS = {"peak_active": "active", "peak_alloc": "allocated", "peak_reserved": "reserved"}
RUNS = ["MLP_1gpu", "MLP_1gpu_sgd", "GPT2_small_1gpu_bs8_fp32_foreach", "A1_llama2_7b_w8_bs8_fullAC_fused"]


@pytest.mark.parametrize("name", RUNS)
def test_a_golden_run_is_the_same_when_watched(plimsoll_run, tmp_path, name):
    if not GOLDEN.is_dir():
        pytest.skip("the golden data is not beside the repository")
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    config = {**golden["config"], "trace": False}
    run = plimsoll_run(GOLDEN / "train.py", json.dumps(config), "out.json")
    assert run.code == 0, run.stderr
    assert json.loads((tmp_path / "out.json").read_text())["phases"] == golden["phases"]
    ours = [{book: step[f"{word}_peak_bytes"] for book, word in BOOKS.items()} for step in run.json["steps"]]
    assert ours == golden["per_step"]
    assert run.json["top_total_bytes"] == run.json["peak"]["active_bytes"] == golden["overall"]["peak_active"]
