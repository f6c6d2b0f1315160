"""The golden training runs of torch 2.13, repeated under `plimsoll run`: the same bytes in every phase."""

import importlib.util
import itertools
import json
from collections import Counter
from importlib import metadata

import golden
import pytest
from golden_observer import check_observer

pytestmark = [
    pytest.mark.recorded,
    pytest.mark.warm,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None or not metadata.version("torch").startswith("2.13."),
        reason="the golden runs are of torch 2.13",
    ),
]

COMPILED = "L3_8b_w8_bs2_opAC_torchtitan_dec2024_compiled"
CASES = {case.name: case for case in golden.cases("training")}
EAGER = [name for name in CASES if name != COMPILED]


@pytest.fixture
def repeat(plimsoll_run, tmp_path):
    """Repeats a golden run; returns the golden file, the script's own output file, and the run."""

    def run(name, **env):
        recorded = CASES[name].read()
        config = {**recorded["config"], "trace": CASES[name].trace.exists()}
        out = tmp_path / "out.json"
        done = plimsoll_run(*golden.options(recorded["env"]), golden.TRAIN, json.dumps(config), out, env=env)
        assert out.exists(), done.stderr
        return recorded, golden.read(out), done

    return run


@pytest.mark.parametrize("name", EAGER)
def test_a_run_gives_the_golden_bytes_to_the_script_and_to_the_observer(repeat, tmp_path, name):
    recorded, seen, run = repeat(name)
    assert seen["phases"] == recorded["phases"]
    if recorded["error"]:
        check_out_of_memory(recorded, seen, run)
    else:
        assert seen["error"] is None
        assert run.code == 0
        check_observer(recorded, run.json)
    if CASES[name].trace.exists():
        check_trace(golden.read(CASES[name].trace), golden.read(tmp_path / "out.trace.json.gz"))


def check_out_of_memory(recorded, seen, run):
    last = recorded["phases"][-1]
    # After these words torch adds NVML's data about the process, which the golden GPU did not have.
    until = recorded["error"].index("is free.")
    assert seen["error"][:until] == recorded["error"][:until]
    assert last["phase"] == "oom"
    # The script catches the last out-of-memory error and ends: the run counts as out of memory.
    assert run.code == 3
    assert run.json["fits"] is False
    assert run.json["ooms_handled"] == last["ooms"] - 1
    assert run.json["peak"]["reserved_bytes"] == max(phase["peak_reserved"] for phase in recorded["phases"])


def check_trace(recorded, seen):
    """Deterministic to the event, except with autocast: it frees its casts in no fixed order."""
    ours, theirs = seen["events"], recorded["events"]
    if recorded["config"]["autocast"]:
        assert not Counter(map(without_address, ours)) - Counter(map(without_address, theirs))
        assert len(ours) == len(theirs)
    elif order_of_handles(seen) == order_of_handles(recorded):
        assert first_difference(ours, theirs) is None
    else:
        assert first_difference(with_releases_sorted(ours), with_releases_sorted(theirs)) is None


def first_difference(ours, theirs):
    """The first difference and its index. pytest's own comparison of fifty thousand events would take hours."""
    pairs = enumerate(itertools.zip_longest(ours, theirs))
    return next(((number, *pair) for number, pair in pairs if pair[0] != pair[1]), None)


def without_address(event):
    code, _, size, stream = event
    return code, size, stream


def order_of_handles(trace):
    """The streams in the order of their handles, numbered by first use."""
    return sorted(range(len(trace["streams"])), key=trace["streams"].__getitem__)


def with_releases_sorted(events):
    """The allocator frees a batch stream by stream, in the order of the stream handles. Handles are pointers, so this order
    is arbitrary."""
    found = []
    for is_release, group in itertools.groupby(events, lambda event: event[0] in ("s", "U")):
        found += sorted(group, key=lambda event: (event[3], event[1])) if is_release else group
    return found


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_compiled_blocks_give_the_golden_active_bytes(repeat, tmp_path):
    # With an empty cache, all kernels are compiled and autotuned as in the golden run.
    recorded, seen, run = repeat(COMPILED, COMPILE="1", TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"))
    assert run.code == 0
    for ours, theirs in zip(seen["phases"], recorded["phases"]):
        for book in ("peak_active", "end_active", "peak_alloc", "end_alloc"):
            assert ours[book] == theirs[book], (theirs["step"], theirs["phase"], book)
    # Autotuning changes reserved memory, so this holds only with a cold cache.
    assert [phase["peak_reserved"] for phase in seen["phases"]] == [p["peak_reserved"] for p in recorded["phases"]]
    assert run.json["peak"]["active_bytes"] == recorded["overall"]["peak_active"]
