"""Plans and runs against published measurements on H100s."""

import importlib.util
import sys

import golden
import needs
import pytest
from needs import HOME
from planner import why_no_plan

sys.path.insert(0, str(HOME / "scripts"))

from accuracy import PAGE, PLANS, RUNS, WITHIN, difference, line, peak

REASON = why_no_plan()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


# The same jobs on 128 GPUs would take the same time again and test the same code.
COMMANDS = [
    command
    for command in dict.fromkeys(row.command for row in RUNS)
    if needs.EVERY_CASE or "--world-size 128" not in command
]


def check(row):
    if row.known:
        assert abs(difference(row)) > WITHIN, "is known to be far off, and is not"
    else:
        assert abs(difference(row)) <= WITHIN
    # In its own table, because a plan and a run may have the same line.
    name = "plans" if row in PLANS else "runs"
    page = (
        PAGE.read_text(encoding="utf-8").partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0]
    )
    assert line(row) in page.splitlines(), "scripts/accuracy.py --write"


@pytest.mark.parametrize("row", PLANS, ids=lambda row: row.job)
def test_a_plan_is_within_the_published_difference_of_the_measurement(row):
    check(row)


def command_of_a_run(command):
    if "--compile" not in command:
        return command
    missing = importlib.util.find_spec("triton") is None
    return pytest.param(
        command, marks=[pytest.mark.slow, pytest.mark.skipif(missing, reason="triton is not installed")]
    )


@pytest.mark.recorded
@pytest.mark.parametrize("command", map(command_of_a_run, COMMANDS))
def test_a_run_is_near_the_measurement_and_equals_the_recording_to_the_byte(command):
    for row in RUNS:
        if row.command == command:
            check(row)
            if row.golden:
                recorded = golden.read(golden.FOLDER / "training" / f"{row.golden}.json")["overall"]
                books = {"active": "peak_active", "allocated": "peak_alloc", "reserved": "peak_reserved"}
                assert {ours: peak(command)[f"{ours}_bytes"] for ours in books} == {
                    ours: recorded[theirs] for ours, theirs in books.items()
                }
