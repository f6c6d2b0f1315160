"""Sharded training under FakeTensorMode: our trackers report the same as on the pretend GPU. Both round to blocks of 512 bytes, and
rests of large blocks do not occur at these sizes. Missing is only memory that needs the allocator: cuBLAS's workspaces, and at
peaks the temporaries inside operators.

torch's trackers count DTensor's propagation of shapes as memory of this rank, at global shape, because it runs under the script's
own fake mode (torch.distributed.tensor._sharding_prop)."""

import json
import os
import subprocess

import needs
import pytest

PROGRAM = needs.PYTHON_PROGRAMS / "trackers_sharded_fake.py"
WORLD, WIDTH, BATCH = 8, 1000, 16
CASES = ("fsdp", "dtensor")
WHY_NOT = needs.why_no_package()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


def run(*cases):
    environment = {
        **os.environ,
        **needs.pretend_gpu(),
        "PYTHONPATH": str(needs.HOME / "python"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(needs.python(PROGRAM, *cases), capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(zip(cases, map(json.loads, done.stdout.splitlines())))


@pytest.fixture(scope="module")
def found():
    """torch's first: it leaves no memory that ours would count."""
    return {
        **run(*(f"torch,{what},fake" for what in CASES), *(f"plimsoll,{what},real" for what in CASES)),
        **run(*(f"plimsoll,{what},fake" for what in CASES)),
    }


def on_gpu(snapshot):
    return {
        category: size
        for category, size in snapshot["cuda:0"].items()
        if size and category not in ("Workspace", "Total", "Other")
    }


def rounded(numel, bytes_each=4):
    return -(-numel * bytes_each // 512) * 512


WHOLE = rounded(WIDTH * WIDTH)
SHARD = rounded(WIDTH * WIDTH // WORLD)
SHARDED = 3 * (SHARD + rounded(WIDTH // WORLD))  # three layers, each a weight and a bias


@pytest.mark.parametrize("what", CASES)
def test_each_point_of_a_step_equals_the_pretend_gpus(found, what):
    fake, real = found[f"plimsoll,{what},fake"], found[f"plimsoll,{what},real"]
    for point, snapshot in real["points"].items():
        assert on_gpu(fake["points"][point]) == on_gpu(snapshot), point


@pytest.mark.parametrize("what", CASES)
def test_each_state_of_each_module_equals_the_pretend_gpus(found, what):
    fake, real = found[f"plimsoll,{what},fake"]["modules"], found[f"plimsoll,{what},real"]["modules"]
    assert real and fake.keys() == real.keys()
    for module, states in real.items():
        assert list(fake[module]) == list(states)
        for state, calls in states.items():
            if "Peak" not in state:
                assert [on_gpu(one) for one in fake[module][state]] == [on_gpu(one) for one in calls], (module, state)


def test_the_categories_of_fsdp_equal_their_formulas(found):
    for memory in ("fake", "real"):
        said = found[f"plimsoll,fsdp,{memory}"]
        step, peak = on_gpu(said["points"]["step"]), on_gpu(said["peak"])
        assert step == {
            "Sharded Param": SHARDED, "Sharded Grad": SHARDED, "OptState": 2 * SHARDED, "Inputs": rounded(BATCH * WIDTH),
        }  # fmt: skip
        # In backward one layer is unsharded, the next one is being gathered, the previous one's gradients are being reduced.
        assert peak["Sharded Param"] == SHARDED
        assert peak["Unsharded Param"] == WHOLE + rounded(WIDTH)
        assert peak["All Gather"] == peak["Reduce Scatter"] == rounded(WIDTH * WIDTH + WIDTH)


def test_at_the_peak_only_temporaries_inside_operators_are_missing(found):
    for what in CASES:
        fake, real = on_gpu(found[f"plimsoll,{what},fake"]["peak"]), on_gpu(found[f"plimsoll,{what},real"]["peak"])
        missing = {category: real.get(category, 0) - fake.get(category, 0) for category in {**real, **fake}}
        assert all(size == 0 for category, size in missing.items() if category not in ("Activation", "Temp")), missing
        assert all(size >= 0 for size in missing.values()), missing


def test_torchs_tracker_counts_dtensors_shape_propagation_as_memory(found):
    ours, theirs = found["plimsoll,dtensor,fake"]["peak"]["cuda:0"], found["torch,dtensor,fake"]["peak"]["cuda:0"]
    assert theirs["Temp"] - ours["Temp"] == WHOLE  # the weight's gradient: this rank has an eighth
    ours, theirs = found["plimsoll,fsdp,fake"]["points"]["step"]["cuda:0"], found["torch,fsdp,fake"]["peak"]["cuda:0"]
    # torch's peak is in Adam's step, unlike ours: three temporaries of the full weight, and one of the shard.
    assert theirs["OptState"] - ours["OptState"] == 3 * WHOLE + SHARD
    assert theirs["Total"] > found["plimsoll,fsdp,fake"]["peak"]["cuda:0"]["Total"]
