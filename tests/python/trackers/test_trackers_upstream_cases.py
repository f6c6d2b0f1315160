"""The trackers in Python around the trainings of torch's own tests of its trackers, with the same sizes. Torch's tests accept a
difference of 10 % in the peak; these require the allocator's count in bytes. On the pretend GPU it is the CUDA caching allocator's
own, on CPU the profiler's (with tensors of the same size that are not computed).

If our tracker is not built (tracker_choice.py), the same programs run with torch's, and only torch's promises are tested.
"""

import functools
import itertools
import json
import os
import subprocess

import needs
import pytest
import tracker_choice

COMMAND = needs.BUILD / "bin" / "plimsoll"
OURS = tracker_choice.ours()
EXACT = OURS == "plimsoll"

TRAINING = ["stack device=cuda:0", "checkpointed device=cuda:0 reentrant=0", "checkpointed device=cuda:0 reentrant=1",
            "in_forward device=cuda:0"]  # fmt: skip
ON_CPU = [case.replace("cuda:0", "cpu") for case in TRAINING if "in_forward" not in case]
ATTRIBUTION = ["attribution device=cpu", "attribution device=cuda:0"]
GROUPS = [f"fsdp_groups device=cuda:0 reshard={reshard} offload={offload}" for reshard in (1, 0) for offload in (0, 1)]
AGAIN = [
    f"fsdp_checkpointed device=cuda:0 reshard={reshard} kind={kind}"
    for reshard in (1, 0)
    for kind in ("wrapper", "composable")
]
FSDP = [*GROUPS, "fsdp_part device=cuda:0", *AGAIN, "fsdp_pairs device=cuda:0"]
FSDP_ON_CPU = [case.replace("cuda:0", "cpu") for case in FSDP if "offload=1" not in case and case not in AGAIN[1:3]]

WHY_NOT = needs.why_not(COMMAND, cuda=True)
pytestmark = [
    pytest.mark.recorded,
    pytest.mark.xdist_group("trackers_upstream_cases"),  # One worker keeps the output of a run for all tests.
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]


def run(program, cases=(), options=()):
    done = subprocess.run(
        [str(COMMAND), "run", "--quiet", *options, str(needs.PYTHON_PROGRAMS / program)], input="\n".join(cases), capture_output=True, text=True,
        timeout=600, env={**os.environ, **tracker_choice.environment(OURS), "PYTHONPATH": str(needs.HOME / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@functools.cache
def outcome(program, world):
    """The program's output or its error: a failed run is not repeated for each test."""
    cases = FSDP if world > 1 else [*TRAINING, *ON_CPU, *ATTRIBUTION, *FSDP_ON_CPU]
    try:
        return dict(zip(cases, run(program, cases, ["--world-size", str(world)])))
    except (AssertionError, ValueError, subprocess.SubprocessError) as error:
        return error


def found_by(program, world):
    found = outcome(program, world)
    if isinstance(found, Exception):
        pytest.fail(f"{program} with {OURS}'s trackers: {found}", pytrace=False)
    return found


def seen(case):
    return found_by("trackers_upstream_cases.py", 4 if case in FSDP else 1)[case]


def modules():
    return next(iter(found_by("trackers_modules.py", 1).values()))


def check_peak(found, device="cuda:0"):
    said = found["peak"][device]
    if not EXACT:
        # torch's does not know memory from before its scope, and promises nine tenths of the rest.
        assert said["Total"] == pytest.approx(found["active_peak"] - found["unregistered"], rel=0.1)
        return
    assert said["Total"] == found["active_peak"]
    assert sum(said.values()) == 2 * said["Total"]  # Each byte is in one category.
    assert found["current"][device]["Total"] == found["active_after"]


@pytest.mark.parametrize("case", TRAINING)
def test_the_peak_of_training_equals_the_allocators(case):
    check_peak(seen(case))


@pytest.mark.parametrize("case", FSDP)
def test_the_peak_of_training_under_fsdp_equals_the_allocators(case):
    check_peak(seen(case))


@pytest.mark.parametrize("case", [*ON_CPU, *FSDP_ON_CPU])
def test_the_peak_on_cpu_equals_the_profilers(case):
    found = seen(case)
    there = found["before"]["cpu"]["Total"] + found["added_at_most"]
    said = found["peak"]["cpu"]["Total"]
    assert said == (there if EXACT else pytest.approx(there, rel=0.1))


@pytest.mark.parametrize("case", [*TRAINING, *ON_CPU])
def test_after_training_only_model_optimizer_state_and_batch_are_left(case):
    """No gradient, activation or temporary is left on either device."""
    for device, books in seen(case)["current"].items():
        left = {category: size for category, size in books.items() if size and category not in ("Total", "Workspace")}
        assert left.keys() <= {"Parameter", "Optstate", "Other"}, device


@pytest.mark.parametrize("point", ["before forward", "after backward", "after step", "after zero_grad"])
@pytest.mark.parametrize("case", ATTRIBUTION)
def test_parameters_gradients_and_state_have_their_own_categories(case, point):
    found = seen(case)["points"][point]
    assert {category: found["said"][category] for category in found["there"]} == found["there"]


def test_a_shard_on_the_cpu_counts_on_the_cpu():
    for case in GROUPS:
        offloaded = "offload=1" in case
        for device, has_shards in (("cuda:0", not offloaded), ("cpu", offloaded)):
            assert bool(seen(case)["current"][device]["Sharded Param"]) == has_shards, case


def test_only_modules_that_ran_have_states():
    """torch's does not know the enclosing sequence, which did not run."""
    for case in ("fsdp_part device=cuda:0", "fsdp_part device=cpu"):
        assert seen(case)["states"].keys() == {"FSDPSequential.0" if EXACT else "FSDPWidening"}


FORWARD = {"Before Pre-Forward", "After Pre-Forward", "Before Post-Forward", "After Post-Forward", "Peak Forward"}
BACKWARD = {"Before Pre-Backward", "After Pre-Backward", "Before Post-Backward", "After Post-Backward", "Peak Backward"}
RECOMPUTED = {"Pre-Forward AC", "Post-Forward AC"}


@pytest.mark.parametrize("case", [*FSDP, *FSDP_ON_CPU])
def test_each_fsdp_module_has_each_stage_once(case):
    for name, states in seen(case)["states"].items():
        if name == "FSDPSequential":
            # A root without own parameters: torch's leaves it out, ours has its forward.
            assert states == dict.fromkeys(FORWARD | {"Peak Backward"}, 1)
            continue
        # The wrapper is the FSDP module, and the wrapped module runs again.
        again = "kind=composable" in case and "blocks" in name
        expected = dict.fromkeys(FORWARD | BACKWARD | (RECOMPUTED if again else set()), 1)
        if ", " in name:  # Two modules that were sharded together: each has its pre-forward.
            expected |= {"Before Pre-Forward": 2, "After Pre-Forward": 2}
        assert states == expected, name


@pytest.mark.parametrize("case", [*TRAINING, *ON_CPU])
def test_each_module_has_each_state_once(case):
    """In the last step: the statistics were reset after the first step."""
    usual = {"Pre-Forward", "Post-Forward", "Peak-Forward", "Pre-Backward", "Post-Backward", "Peak-Backward"}
    again = {"Pre-Forward-AC", "Post-Forward-AC"}
    for name, states in seen(case)["states"].items():
        first = "blocks" not in name or "blocks.0" in name
        if first:
            expected = usual
        elif "reentrant=1" in case:
            # The first forward has no graph, so the start of its backward is not observed.
            # torch's still ends it, at the end of the whole pass.
            expected = (usual - {"Pre-Backward", "Peak-Backward"} - ({"Post-Backward"} if EXACT else set())) | again
        else:
            expected = usual | again
        assert states == dict.fromkeys(expected, 1), name


def only(events, *kinds):
    return [event for event in events if event[0] in kinds]


@pytest.mark.parametrize("scenario, order", [("hierarchy", ("listed.0", "plain", "named.inner")),
                                             ("repeated", ("listed.0", "plain", "listed.0", "named.inner"))])  # fmt: skip
def test_a_modules_parents_are_known_in_its_forward_and_in_its_backward(scenario, order):
    events = modules()[scenario]
    passes = 2 if scenario == "hierarchy" else 1
    forward = [["forward", sorted(["Global", "Nested", f"Nested.{name}"]), False] for name in order]
    backward = [["backward", parents, True] for _, parents, _ in reversed(forward)]
    assert only(events, "forward", "backward") == (forward + backward) * passes


def test_outside_of_passes_only_the_global_parent_is_known():
    *events, known = modules()["outside_of_backward"]
    assert events == [[when, ["Global"], False] for when in ("before", "between", "after")]
    assert known == ["Linear", None]
    assert modules()["hierarchy"][-1] == ["after", ["Global"], False]


def test_a_module_within_itself_is_a_parent_until_its_outer_call_ends():
    *events, warned = modules()["one_within_itself"]
    assert [when for when, *_ in events] == ["in 1", "in 0", "out 0", "out 1"]
    assert all(parents == ["Counting", "Global"] for _, parents, _ in events)
    assert warned == ["warned", not EXACT]  # torch's warns that its own count is uncertain; ours does not.


def test_roots_have_the_names_of_their_classes():
    assert {name for _, name, *_ in modules()["two_roots"]} == {"Linear", "Sequential", "Sequential.0"}


def hooks(*events, in_backward, known=True):
    return [[what, name if known else None, known, in_backward] for what, name in events]


PASS = hooks(
    ("pre_fw", "Relu"), ("pre_fw", "Relu.linear"), ("post_fw", "Relu.linear"), ("post_fw", "Relu"), in_backward=False
)  # fmt: skip
BEGIN = [("pre_bw", "Relu"), ("pre_bw", "Relu.linear")]


def test_user_hooks_are_called_around_each_pass_of_each_module():
    events = modules()["user_hooks"]
    marks = [
        index for index, event in enumerate(events) if event[0] in ("without gradients of inputs", "refused", "left")
    ]
    first, second, third = (events[begin + 1 : end] for begin, end in itertools.pairwise([-1, *marks]))
    assert first == PASS + hooks(*BEGIN, ("post_bw", "Relu"), ("post_bw", "Relu.linear"), in_backward=True)
    # If no input has a gradient, a backward ends with the whole pass: the inner module first.
    assert second == PASS + hooks(*BEGIN, ("post_bw", "Relu.linear"), ("post_bw", "Relu"), in_backward=True)
    assert events[marks[1]] == ["refused", "AssertionError"]
    assert third == hooks(("only", "Relu.linear"), ("only", "Relu"), in_backward=False)
    assert events[marks[2] :] == [["left", ["Global"], False]]  # Outside of the scope no hook is called.


def test_the_backward_of_a_freed_module_is_not_reported_for_it():
    ends = [("post_bw", "Relu"), ("post_bw", "Relu.linear")]
    assert modules()["module_that_is_gone"] == PASS + hooks(*BEGIN, *ends, in_backward=True, known=False)


def around(name, *inner):
    return [("pre_fw", name), *inner, ("post_fw", name)]


def layer(index):
    name = f"Some.layers.{index}"
    return around(name, *around(f"{name}.linear"))


WHOLE_FORWARD = around("Some", *layer(0), *layer(1), *layer(2))
FIRST_LAYERS_END = [("post_bw", "Some.layers.0.linear"), ("post_bw", "Some.layers.0"), ("post_bw", "Some")]


@pytest.mark.parametrize("scenario", ["checkpointed_without_reentry", "checkpointed_to_the_end"])
def test_a_recomputation_is_a_forward_within_the_backward_of_its_module(scenario):
    *events, after = modules()[scenario]
    backward = [("pre_bw", "Some.layers.2"), ("pre_bw", "Some")]
    for index in (2, 1):
        name = f"Some.layers.{index}"
        backward += [*layer(index), ("pre_bw", f"{name}.linear"), ("pre_bw", f"Some.layers.{index - 1}")]
        backward += [("post_bw", name), ("post_bw", f"{name}.linear")]
    backward += [("pre_bw", "Some.layers.0.linear"), *FIRST_LAYERS_END]
    assert events == hooks(*WHOLE_FORWARD, in_backward=False) + hooks(*backward, in_backward=True)
    assert after == ["after", ["Global"], False]


def test_a_reentrant_recomputation_is_a_forward_within_backward():
    """The first forward made no graph, so the backward of such a module has no start. torch's still has its end."""
    *events, after = modules()["checkpointed_with_reentry"]
    backward = [("pre_bw", "Some")]
    for index in (2, 1):
        name = f"Some.layers.{index}"
        backward += [*layer(index), *([("pre_bw", "Some.layers.0")] if index == 1 else [])]
        backward += [] if EXACT else [("post_bw", name), ("post_bw", f"{name}.linear")]
    backward += [("pre_bw", "Some.layers.0.linear"), *FIRST_LAYERS_END]
    expected = [(what, name, False) for what, name in WHOLE_FORWARD] + [(what, name, True) for what, name in backward]
    assert [(what, name, in_backward) for what, name, _, in_backward in events] == expected
    assert after == ["after", ["Global"], False]


def test_a_forward_that_raises_has_ended():
    events = modules()["raising_forward"]
    assert [what for what, *_ in only(events, "pre_fw", "post_fw")].count("post_fw") == 3
    assert events[-1] == ["raised", ["Global"], False]
