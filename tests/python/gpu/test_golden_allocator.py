"""Seeded sequences through the real allocator on the pretend GPU: the golden statistics after each operation."""

import json

import golden
import pytest

pytestmark = [pytest.mark.recorded, pytest.mark.warm]


@pytest.mark.parametrize("case", golden.cases("allocator"), ids=lambda case: case.name)
def test_each_row_of_a_sequence_equals_the_golden_row(plimsoll_run, tmp_path, case):
    recorded = case.read()
    out = tmp_path / "out.json.gz"
    run = plimsoll_run(*golden.options(recorded["env"]), golden.REPLAY, json.dumps(recorded["config"]), out)
    assert out.exists(), run.stderr
    seen = golden.read(out)
    assert seen["columns"] == recorded["columns"]
    assert len(seen["rows"]) == len(recorded["rows"])
    for number, (ours, theirs) in enumerate(zip(seen["rows"], recorded["rows"])):
        assert ours == theirs, f"row {number}"
    # Failed allocations that the script handled are distinct from a run that ends out of memory.
    failures = sum(1 for _, ok, _, _ in recorded["rows"] if not ok)
    assert run.json["ooms_handled"] == failures
