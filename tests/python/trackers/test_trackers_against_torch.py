"""The trackers in Python against torch's own: the same two training steps with each (trackers_step.py), on CPU, on the pretend
GPU, and as one rank of many under FSDP2. Each category of each state of each module is compared in bytes.

On the GPU each total equals the allocator's count at the same instant of torch's run. If categories differ, each byte must belong
to a kind of difference that tracker_differences.py lists with its reason; and each kind must occur.

If our tracker is not built (tracker_choice.py), torch's is compared with itself, which proves the comparison.
"""

import functools
import itertools
import json
import os
import re
import subprocess

import needs
import pytest
import torchs_answers
import tracker_choice
from tracker_differences import ANOTHER_INSTANT, ELSEWHERE, HELD, KINDS, OTHER_HISTORY, RECOMPUTED, unexplained

COMMAND = needs.BUILD / "bin" / "plimsoll"
OURS = tracker_choice.ours()
EXACT = OURS == "plimsoll"

CHECKPOINTS = ("none", "full", "reentrant", "selective")
WORLDS = (2, 8, 64) if needs.EVERY_CASE else (64,)

STEP_SOURCES = ("trackers_step.py", "tracker_choice.py", "tracker_scenarios.py", "fsdp_tracker.py", "../../../examples/checkpointing.py",
                "../../../examples/language_model.py", "../../../examples/llama.py")  # fmt: skip
WHY_NOT = needs.why_not(COMMAND, cuda=True)
pytestmark = [
    pytest.mark.recorded,
    pytest.mark.xdist_group("trackers_torch"),  # One worker keeps the reports for all tests.
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]


def alone():
    """Cases of one process, by device."""
    for device in ("cpu", "cuda:0"):
        for optimizer in ("adamw", "adamw_fused", "sgd"):
            yield f"model=mlp device={device} checkpoint=none optimizer={optimizer}"
        for model, checkpoint in itertools.product(("transformer", "llama", "gpt2"), CHECKPOINTS):
            yield f"model={model} device={device} checkpoint={checkpoint}"
    for model, checkpoint in itertools.product(("large_llama", "hf_llama", "hf_gpt2"), CHECKPOINTS):
        yield f"model={model} device=cuda:0 checkpoint={checkpoint}"
    for device, model in itertools.product(("cpu", "cuda:0"), ("mlp", "transformer", "llama", "gpt2")):
        for checkpoint in ("none",) if model == "mlp" else CHECKPOINTS:
            yield f"model={model} device={device} checkpoint={checkpoint} optimizer=adamw fake=1"


def sharded():
    few = {"mlp": ("none",), "transformer": ("none", "full"), "llama": CHECKPOINTS, "gpt2": ("none", "full"),
           "large_llama": ("none", "full"), "hf_llama": ("none", "full")}  # fmt: skip
    return [f"model={model} device=cuda:0 checkpoint={how} fsdp=1" for model, hows in few.items() for how in hows]


# Each model with some forms of checkpointing, so that each kind of difference occurs.
SOME_ALONE = {
    "mlp": ("none",),
    "transformer": ("full",),
    "llama": ("none", "selective"),
    "gpt2": ("reentrant",),
    "large_llama": ("full",),
    "hf_llama": ("reentrant",),
    "hf_gpt2": ("reentrant",),
}
SOME_SHARDED = {
    "mlp": ("none",),
    "transformer": ("full",),
    "llama": ("none", "selective"),
    "large_llama": ("none",),
    "hf_llama": ("full",),
}


def chosen(cases, some):
    """All of them with ./check --all."""
    words = (dict(word.split("=") for word in case.split()) for case in cases)
    return [case for case, of in zip(cases, words) if needs.EVERY_CASE or of["checkpoint"] in some.get(of["model"], ())]


ALONE = chosen(list(alone()), SOME_ALONE)
SHARDED = chosen(sharded(), SOME_SHARDED)
CASES = [*ALONE, *(f"{case} world={world}" for world in WORLDS for case in SHARDED)]


# Misuse that ours accepts on purpose.
ALLOWED = {
    "two passes without a reset": "a step begins with the first forward after an optimizer's step, or with a reset"
}


def environment(which):
    return {**os.environ, **tracker_choice.environment(which), "PYTHONPATH": str(needs.HOME / "python")}


def start(program, which, cases, world):
    if world is None:
        command, extra = needs.python(), needs.pretend_gpu()
    else:
        command, extra = [str(COMMAND), "run", "--quiet", "--world-size", str(world)], {}
    started = subprocess.Popen(
        [*command, str(needs.PYTHON_PROGRAMS / program)], env={**environment(which), **extra}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    out, err = started.communicate("\n".join(cases), timeout=900)
    assert started.returncode == 0, err[-3000:]
    return [json.loads(line) for line in out.splitlines()]


@functools.cache
def side(which, program, world):
    """One side's report of each case, or the error of its run: a failed run is not repeated for each test."""
    cases = {"trackers_step.py": ALONE if world is None else SHARDED}.get(program, ["all"])

    def ask(cases):
        return dict(zip(cases, start(program, which, cases, world), strict=True))

    try:
        if which == "torch" and program == "trackers_step.py":
            name = "trackers_step" if world is None else f"trackers_step_{world}"
            # Only the first case, because later cases count memory that earlier ones left.
            return torchs_answers.Recorded(name, STEP_SOURCES, ("torch", "transformers")).ask(cases, ask, live=1)
        return ask(cases)
    except (AssertionError, ValueError, subprocess.SubprocessError) as error:
        return error


def both(program, world=None):
    """Our report and torch's of each case."""
    sides = [side(which, program, world) for which in (OURS, "torch")]
    for which, found in zip((OURS, "torch"), sides, strict=True):
        if isinstance(found, Exception):
            pytest.fail(f"{program} with {which}'s trackers: {found}", pytrace=False)
    return {case: (sides[0][case], sides[1][case]) for case in sides[1]}


def pair(case):
    words = case.split(" world=")
    return both("trackers_step.py", int(words[1]) if len(words) == 2 else None)[words[0]]


def shared(states):
    """Without states that only torch's has: it ends a backward that did not start, at the end of the whole pass, if no output
    has a gradient, as in the first forward of a reentrant checkpoint."""
    return {state: found for state, found in states.items() if state != "Post-Backward" or "Pre-Backward" in states}


def peaks(ours, torchs):
    """(module, state, ours, [torch's counts around the allocator's maximum]) for all peaks."""
    yield "", "peak", ours["peak"], torchs["at_peak"]
    for name, states in torchs["at_peaks_of"].items():
        for state, at in states.items():
            yield from ((name, state, one, found) for one, found in zip(ours["modules"][name][state], at, strict=True))


def instants(ours, torchs):
    """(module, state, ours, torch's, the allocator's count in torch's run) for all states that both have."""
    for point, snapshot in torchs["points"].items():
        yield "", point, ours["points"][point], snapshot, torchs["active"][point]
    yield "", "peak", ours["peak"], torchs["peak"], torchs["active"]["peak"]
    for name, states in torchs["modules"].items():
        for state, snapshots in shared(states).items():
            actives = torchs["active_of"].get(name, {}).get(state) or [None] * len(snapshots)
            for one, other, active in zip(ours["modules"][name][state], snapshots, actives, strict=True):
                yield name, state, one, other, active


FORWARD = {"Before Pre-Forward", "After Pre-Forward", "Before Post-Forward", "After Post-Forward", "Peak Forward"}


def fail_if(different, case):
    if different:
        lines = [f"  {where}\n    {shown}" for where, shown in list(different.items())[:40]]
        pytest.fail("\n".join([f"{case}: {len(different)} differ", *lines]), pytrace=False)


@pytest.mark.parametrize("case", CASES)
def test_each_category_equals_torchs_or_differs_for_a_listed_reason(case):
    different = {}
    for name, state, ours, torchs, _ in instants(*pair(case)):
        for device in ours.keys() | torchs.keys():
            if any(re.search(where, f"{case} | {name} | {state} | {device}") for where in ELSEWHERE):
                continue
            left, _ = unexplained(f"{case} | {name} | {state} | {device}", ours.get(device, {}), torchs.get(device, {}))
            if left:
                different[name, state, device] = {category: size for category, size in left.items() if size}
    fail_if(different, case)


@pytest.mark.parametrize("case", [case for case in CASES if "device=cuda" in case and "fake=1" not in case])
def test_each_total_equals_the_allocators_count_in_torchs_run(case):
    different = {}
    left, left_in_torchs_run = (side["left"] for side in pair(case))
    for name, state, ours, _, active in instants(*pair(case)):
        if active is not None and not any(re.search(where, f"{case} | {name} | {state} |") for where in ELSEWHERE):
            more = ours["cuda:0"]["Total"] - left - (active - left_in_torchs_run)
            # torch's misses some memory: it is at most the allocator's count.
            held = next((2 * size for model, size in HELD.items() if model in case and "reentrant" in case), 0)
            wrong = not -held <= more <= 0 if EXACT else more > 0
            if wrong and not (EXACT and any(re.search(where, case) for where in OTHER_HISTORY)):
                different[name, state] = f"{active} and not {active + more}: {more:+}"
    fail_if(different, case)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "device=cuda" in case and "fake=1" not in case and "large_" not in case]
)
def test_each_peak_is_the_instant_of_the_allocators_maximum_in_torchs_run(case):
    """In each category, including memory inside the operator of the maximum, and without memory of another instant."""
    different = {}
    for name, state, ours, at in peaks(*pair(case)):
        where = f"{case} | {name} | {state} | cuda:0"
        if any(re.search(elsewhere, where) for elsewhere in ELSEWHERE):
            continue
        found = [unexplained(where, ours["cuda:0"], books.get("cuda:0", {}), another_instant=False)[0] for books in at]
        if all(found):
            different[name, state] = found
    fail_if(different, case)


@pytest.mark.skipif(not EXACT, reason="ours is not there")
@pytest.mark.parametrize("case", [case for case in CASES if "fake=1" not in case])
def test_each_total_equals_the_allocators_count(case):
    ours, _ = pair(case)
    assert {point: snapshot["cuda:0"]["Total"] for point, snapshot in ours["points"].items()} == ours["here"]


@pytest.mark.skipif(not EXACT, reason="ours is not there")
@pytest.mark.parametrize("case", [case for case in ALONE if "device=cpu" in case and "fake=1" not in case])
def test_the_peak_on_cpu_equals_the_profilers(case):
    ours, _ = pair(case)
    assert ours["peak"]["cpu"]["Total"] == ours["points"]["0 begin"]["cpu"]["Total"] + ours["added_at_most"]


@pytest.mark.parametrize("case", [case for case in ALONE if "fake=1" in case])
def test_lasting_categories_are_the_same_under_fake_tensor_mode(case):
    """Activations are not compared: under FakeTensorMode operators have other outputs, for example attention's statistics."""
    real, different = case.removesuffix(" fake=1"), {}
    real = real if real in ALONE else real.removesuffix(" optimizer=adamw")

    def held(snapshot):
        return {
            device: {category: books[category] for category in ("Parameter", "Buffer", "Gradient", "Other")}
            for device, books in snapshot.items()
            if device in case
        }

    for name, state, with_memory, without, _ in instants(pair(real)[0], pair(case)[0]):
        if "peak" not in state.lower() and held(with_memory) != held(without):
            different[name, state] = f"with memory {held(with_memory)}\n    without {held(without)}"
    fail_if(different, case)


@pytest.mark.parametrize("case", CASES)
def test_each_module_has_the_states_of_torchs(case):
    def counts(modules):
        return {
            name: {state: len(found) for state, found in shared(states).items()} for name, states in modules.items()
        }

    ours, torchs = (counts(side["modules"]) for side in pair(case))
    if "fsdp=1" in case and "model=mlp" in case:
        # The root has no own parameters: torch's leaves it out, ours has its forward.
        assert ours.pop("FSDPMLP", {}).keys() <= FORWARD | {"Peak Backward"}
    assert ours == torchs


@pytest.mark.parametrize("case", ALONE)
def test_each_modules_own_bytes_equal_torchs(case):
    ours, torchs = pair(case)
    if "large_llama" in case:  # Ours includes the rests of blocks.
        assert ours["own"].keys() == torchs["own"].keys()
        assert all(
            one >= other for name, sizes in torchs["own"].items() for one, other in zip(ours["own"][name], sizes)
        )
    else:
        assert ours["own"] == torchs["own"]


# The numbers differ if blocks have rests (large), and if torch's run holds more memory (HF's models, reentrant).
PRINTED_ALIKE = [
    case for case in CASES if not any(word in case for word in ("fake=1", "large_", "model=hf_llama device=cuda:0 checkpoint=reentrant", "model=hf_gpt2 device=cuda:0 checkpoint=reentrant"))
]  # fmt: skip


@pytest.mark.parametrize("case", PRINTED_ALIKE)
def test_the_printed_text_equals_torchs(case):
    """Except lines that torch's does not have, and totals, which are the allocator's."""

    def by_device(lines):
        found = {}
        for line in lines:
            if line.startswith("Device: "):
                device = found.setdefault(line, [])
            if not line.startswith(("\tWorkspace:", "\tOther:", "\tTotal:")):
                device.append(line)
        return found

    ours, torchs = (by_device(side["printed"]) for side in pair(case))
    assert {device: ours[device] for device in torchs} == torchs


@pytest.mark.skipif(not EXACT, reason="ours is not there")
def test_each_kind_of_difference_occurs():
    seen = set()
    for case in CASES:
        for name, state, ours, torchs, _ in instants(*pair(case)):
            for device in ours.keys() | torchs.keys():
                seen |= unexplained(
                    f"{case} | {name} | {state} | {device}", ours.get(device, {}), torchs.get(device, {})
                )[1]
        for name, state, ours, at in peaks(*pair(case)) if "fake=1" not in case and "device=cuda" in case else ():
            for books in at:
                where = f"{case} | {name} | {state} | cuda:0"
                seen |= unexplained(where, ours["cuda:0"], books.get("cuda:0", {}), another_instant=False)[1]
    # Unregistered memory occurs only if an earlier case left some.
    assert {ANOTHER_INSTANT, RECOMPUTED, *(kind.name for kind in KINDS)} - seen <= {"unregistered memory"}


def test_torchs_reports_differ_between_the_cases():
    """Without this, the equality above could hold for empty output."""
    with_memory = [case for case in CASES if "fake=1" not in case]
    alike = {json.dumps([pair(case)[1]["peak"], pair(case)[1]["modules"]]) for case in with_memory}
    assert len(alike) > 0.9 * len(with_memory)


def test_the_order_of_modules_equals_torchs():
    """Except that torch's warns of a module within itself, and ends the backward of modules that did not start one."""

    def begun(events):
        names = {event[1] for event in events if event[0] == "pre_bw"}
        return [event for event in events if event[0] != "warned" and (event[0] != "post_bw" or event[1] in names)]

    ours, torchs = (
        {name: begun(events) for name, events in side.items()} for side in both("trackers_modules.py")["all"]
    )
    assert ours == torchs


def surface(part):
    return [side[part] for side in both("trackers_surface.py")["all"]]


def test_signatures_equal_torchs():
    ours, torchs = surface("signatures")
    for name, methods in torchs.items():
        assert {key: ours[name].get(key) for key in methods} == methods, name


def test_snapshots_and_statistics_have_torchs_interface():
    ours, torchs = surface("keys")
    assert ours == torchs


def test_misuse_raises_torchs_errors():
    ours, torchs = surface("misuse")
    assert {what: error for what, error in ours.items() if what not in ALLOWED} == {
        what: error for what, error in torchs.items() if what not in ALLOWED
    }
    assert all(ours[what] is None for what in ALLOWED) or not EXACT


def test_module_statistics_print_as_torchs():
    """The text is torch's; temporaries and totals of a peak are the allocator's."""

    def without(displayed):
        return {name: re.sub(r"\t(Temp|Total): [0-9.]+", r"\t\1:", text) for name, text in displayed.items()}

    ours, torchs = surface("displayed")
    assert without(ours) == without(torchs)


@pytest.mark.parametrize("ours, torchs, where, explained", [
    ({"Temp": 5, "Total": 5}, {"Optstate": 5, "Total": 5}, "x |  | peak | cpu", True),
    ({"Temp": 5, "Total": 5}, {"Optstate": 5, "Total": 5}, "x |  | 0 step | cpu", False),
    ({"Temp": 6, "Total": 6}, {"Optstate": 5, "Total": 5}, "x |  | peak | cpu", True),  # One byte inside an operator.
    ({"Temp": 4, "Total": 4}, {"Optstate": 5, "Total": 5}, "x |  | peak | cpu", False),  # Ours never has less.
    ({"Workspace": 9, "Total": 9}, {}, "device=cuda:0 |  | end | cuda:0", True),
    ({"Workspace": 9, "Parameter": 1, "Total": 10}, {}, "device=cuda:0 |  | end | cuda:0", False),
    ({"Gradient": 5, "Total": 5}, {"Gradient": 5, "Total": 5}, "x |  | end | cpu", True),
])  # fmt: skip
def test_a_difference_is_explained_by_its_kind_only(ours, torchs, where, explained):
    assert (unexplained(where, ours, torchs)[0] == {}) == explained
