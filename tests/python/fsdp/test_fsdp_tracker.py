"""FSDPMemTracker in C++ against torch's own in Python, around the same training step under FSDP2 on the pretend GPU: each
category of each state of each FSDP module, and at points of the step, in bytes.

Both see the same memory at the same instants. They differ in two ways:

*Names.* Ours names memory at its allocation, torch's at the end of a stage: until then it is an Activation in forward, Temp in
backward, OptState in an optimizer's step. `naming` lists the categories that may have these names, state by state.

*Memory inside operators.* Ours sees it; torch's sees only the outputs of operators. So the totals of peaks are compared with the
allocator's count during torch's run.
"""

import json
import os
import re
import subprocess
from typing import NamedTuple

import fsdp_cases
import needs
import pytest
import torchs_answers

PROGRAM = needs.PROGRAMS / "fsdp_tracker"
ORACLE = needs.PYTHON_PROGRAMS / "fsdp_tracker.py"
DROP_IN = needs.PYTHON_PROGRAMS / "fsdp_tracker_drop_in.py"
CASES = fsdp_cases.tracker_cases()
ANSWERS = torchs_answers.Recorded("fsdp_tracker", (*fsdp_cases.training_sources(ORACLE.name), "fsdp_memory.py"))
LARGE = {line: name for line, name in CASES.items() if "large=1" in line}
SMALL = {line: name for line, name in CASES.items() if line not in LARGE}
IN_BOTH_LANGUAGES = {**CASES, **fsdp_cases.drop_in_cases()}

WORKSPACES = 2 * (32 << 20)  # cuBLAS's workspaces of this thread and of autograd's thread

TORCHS = (
    "Sharded Param", "Unsharded Param", "Buffer", "Sharded Grad", "Unsharded Grad", "Activation", "Temp", "All Gather",
    "Reduce Scatter", "OptState", "Inputs",
)  # fmt: skip
FORWARD = ("Before Pre-Forward", "After Pre-Forward", "Before Post-Forward", "After Post-Forward", "Peak Forward")


WHY_NOT = needs.why_not(PROGRAM, cuda=True)
pytestmark = [pytest.mark.recorded, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]


def run(command, cases, env=None):
    done = subprocess.run(
        command, input="\n".join(cases), capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(cases, found, strict=True))


@pytest.fixture(scope="module")
def ours():
    """The report of the C++ tracker on C++ FSDP2 in each case."""
    return run([str(PROGRAM)], IN_BOTH_LANGUAGES)


@pytest.fixture(scope="module")
def both(ours):
    """The reports of our tracker and of torch's."""
    return ours, ANSWERS.ask(CASES, lambda cases: run(needs.python(ORACLE), cases, needs.pretend_gpu()))


@pytest.fixture(scope="module")
def ours_in_both_languages(ours):
    """The same, and the report of the drop-in on torch's FSDP2 in Python."""
    environment = {**needs.pretend_gpu(), "PYTHONPATH": str(needs.HOME / "python")}
    return ours, run(needs.python(DROP_IN), IN_BOTH_LANGUAGES, environment)


def books(snapshot, device):
    """{category: bytes} without empty categories. The total excludes workspaces, which torch's tracker does not see."""
    found = {category: bytes for category, bytes in snapshot.get(device, {}).items() if bytes and category != "Active"}
    found["Total"] = found.get("Total", 0) - found.pop("Workspace", 0)
    return found


def modules_of(found, key="modules"):
    """The C++ name for a name in Python: fully_shard renames class Block to FSDPBlock, C++ keeps class names. Modules that were
    sharded together have all of their names."""
    return {re.sub(r"(^|, )FSDP", r"\1", name): module for name, module in found[key].items()}


class Naming(NamedTuple):
    """The name that torch's tracker gives to memory it has not categorised yet, and our more exact categories."""

    unnamed: str
    may_be: frozenset = frozenset()


def naming(case, state):
    """All differences in names. In each other category the bytes are equal."""
    words = fsdp_cases.words_of(case)
    if state in FORWARD:
        # An instant within Pre-Forward: torch's names unsharded parameters at its end, and all-gather buffers when the
        # all-gather starts.
        return Naming("Activation", frozenset({"Unsharded Param", "All Gather"} if state == "Peak Forward" else ()))
    if state == "optimizer":
        # torch's counts all allocations of an optimizer's step as its state.
        return Naming("OptState", frozenset({"Temp"}))
    unknown = set()
    if words.get("wrap") != "root" or "Post-Backward" not in state:
        # torch's names unsharded gradients when Post-Backward of their module starts, ours at once: so those of a module in
        # backward differ, as the root is nearly all the time.
        unknown |= {"Unsharded Grad"}
    if words["world"] == "1":
        # One rank has nothing to reduce: the reduction is a copy, and torch's sees no reduce-scatter.
        unknown |= {"Reduce Scatter"}
    if "prefetch" in words:
        # Prefetched parameters are gathered at the end of Pre-Backward in torch's view.
        unknown |= {"All Gather"}
    if state == "Peak Backward":
        # An instant within Pre-Backward or Post-Backward: torch's names the buffers of a collective when it starts, the result
        # of a reduction at the end of Post-Backward, and the casts for an all-gather never.
        unknown |= {"All Gather", "All Gather Input", "Reduce Scatter", "Reduce Scatter Output"}
        if "checkpoint" in words and words.get("wrap") == "root":
            # torch's does not know that a checkpoint inside an FSDP module makes activations again.
            unknown |= {"Activation"}
    return Naming("Temp", frozenset(unknown))


def differences(ours, torchs, names):
    """A line for each category in which the two differ by more than names."""
    wrong = {}
    for category in ({*ours, *torchs} | {"Total"}) - {names.unnamed}:
        more = ours.get(category, 0) - torchs.get(category, 0)
        if more < 0 or (more > 0 and category not in names.may_be):
            wrong[category] = more
    ours_unnamed = sum(ours.get(category, 0) for category in (names.unnamed, *names.may_be))
    torchs_unnamed = sum(torchs.get(category, 0) for category in (names.unnamed, *names.may_be))
    if not wrong and ours_unnamed != torchs_unnamed:
        wrong[names.unnamed] = ours_unnamed - torchs_unnamed
    return [
        f"    {category:22} ours {ours.get(category, 0):>9}  torch's {torchs.get(category, 0):>9}  {more:+}"
        for category, more in sorted(wrong.items())
    ]


def fail_if(different, case):
    if different:
        shown = [line for where, lines in different.items() for line in (f"  {where}", *lines)]
        pytest.fail("\n".join([f"{case}: {len(different)} differ", *shown[:80]]), pytrace=False)


def unwound(case, ours):
    """Our report with one hidden state added. A recomputation ends by an exception once it has the saved tensors. When it
    reaches the module's hook, C++ has destroyed the variables of the forwards, but Python's frames still hold them. If
    Llama's norms compute in another type than the parameters', only such a frame holds one hidden state."""
    words = fsdp_cases.words_of(case)
    if words["model"] != "llama" or "param" not in words:
        return ours
    device, texts = "cuda:0", 2
    missing = texts * int(words["context"]) * int(words["dim"]) * 2  # bytes of bf16
    held = dict(ours[device])
    held["Activation"] += missing
    held["Total"] += missing
    return {**ours, device: held}


def paired(case, ours, torchs):
    """(module, state, call, ours, torch's) for each state; checks that both have the same states."""
    mine, theirs = modules_of(ours), modules_of(torchs)
    assert mine.keys() == theirs.keys()
    for name, states in theirs.items():
        assert mine[name].keys() == states.keys(), name
        for state, snapshots in states.items():
            found = mine[name][state]
            if "times=" in case and state in ("Before Pre-Forward", "Peak Forward"):
                # torch's has only the first of several calls, and one peak for all calls.
                assert len(snapshots) == 1 <= len(found), (name, state)
                highest = max(found, key=lambda snapshot: books(snapshot, "cuda:0")["Total"])
                found = [highest if "Peak" in state else found[0]]
            assert len(found) == len(snapshots), (name, state)
            for call, (one, other) in enumerate(zip(found, snapshots)):
                yield name, state, call, unwound(case, one) if state == "Post-Forward AC" else one, other


@pytest.mark.parametrize("case", SMALL, ids=SMALL.values())
def test_each_instant_equals_torchs_in_each_category(both, case):
    ours, torchs = (side[case] for side in both)
    different = {}
    assert ours["points"].keys() == torchs["points"].keys()
    for point, snapshot in torchs["points"].items():
        for device in ("cuda:0", "cpu"):
            lines = differences(books(ours["points"][point], device), books(snapshot, device), Naming(""))
            if lines:
                different[point, device] = lines
    for name, state, call, one, other in paired(case, ours, torchs):
        if "Peak" not in state:
            for device in ("cuda:0", "cpu"):
                lines = differences(books(one, device), books(other, device), naming(case, state))
                if lines:
                    different[name, state, call, device] = lines
    fail_if(different, case)


def phase_of(peak):
    """The part of the step that has the peak."""
    if peak.get("OptState"):
        return "optimizer"
    backward = ("Temp", "Unsharded Grad", "Sharded Grad", "Reduce Scatter")
    return "Peak Backward" if any(peak.get(category) for category in backward) else "Peak Forward"


def compare_peak(case, state, ours, torchs, highest, elsewhere=False):
    """A line for each defect. The total must equal the allocator's; the categories torch's, plus unnamed memory inside the
    operator of the peak, mostly the pointer tables of FSDP's copies. `elsewhere`: a higher peak of ours may be at another
    instant."""
    if ours["Total"] != highest:
        return [f"    ours {ours['Total']:>9}  the allocator's {highest:>9}  torch's {torchs['Total']:>9}"]
    inside = ours["Total"] - torchs["Total"]
    # Attention needs more memory inside its backward than torch's sees at any other instant of a Llama.
    if inside > 0 and (elsewhere or ("model=llama" in case and state == "Peak Backward")):
        lasting = {"Sharded Param", "Buffer", "Inputs"}
        ours, torchs = ({name: bytes for name, bytes in side.items() if name in lasting} for side in (ours, torchs))
        return differences(ours, torchs, Naming(""))
    names = naming(case, state)
    seen_by_torchs = {**ours, names.unnamed: ours.get(names.unnamed, 0) - inside, "Total": torchs["Total"]}
    return differences(seen_by_torchs, torchs, names)


@pytest.mark.parametrize("case", SMALL, ids=SMALL.values())
def test_each_peak_equals_the_allocators_and_torchs_except_memory_inside_operators(both, case):
    ours, torchs = (side[case] for side in both)
    highest = modules_of(torchs, "highest_of")
    different = {}
    for name, state, call, one, other in paired(case, ours, torchs):
        if "Peak" in state:
            a, b = books(one, "cuda:0"), books(other, "cuda:0")
            lines = compare_peak(case, state, a, b, highest[name][state][call])
            if lines:
                different[name, state, call] = lines
    a, b = books(ours["peak"], "cuda:0"), books(torchs["peak"], "cuda:0")
    # The peak that torch's has in forward may occur again in backward, with a pointer table.
    lines = compare_peak(case, phase_of(b), a, b, torchs["highest"], elsewhere=phase_of(a) != phase_of(b))
    if lines:
        different["the step", phase_of(b)] = lines
    fail_if(different, case)


@pytest.mark.parametrize("case", CASES, ids=CASES.values())
def test_each_total_equals_the_allocators_count_in_torchs_training(both, case):
    ours, torchs = (side[case] for side in both)
    highest = modules_of(torchs, "highest_of")
    expected = {point: snapshot["cuda:0"]["Active"] for point, snapshot in torchs["points"].items()}
    found = {point: books(snapshot, "cuda:0")["Total"] for point, snapshot in ours["points"].items()}
    for name, state, call, one, other in paired(case, ours, torchs):
        peak = "Peak" in state
        expected[name, state, call] = highest[name][state][call] if peak else other["cuda:0"]["Active"]
        found[name, state, call] = books(one, "cuda:0")["Total"]
    expected["peak"], found["peak"] = torchs["highest"], books(ours["peak"], "cuda:0")["Total"]
    assert found == expected


def test_torchs_totals_equal_the_allocators_except_unsplit_blocks(both):
    """The allocator does not split off a rest of less than 1 MiB from a large block: ours counts the rest, torch's does not."""

    def unsplit(torchs):
        snapshots = [snapshot for states in torchs["modules"].values() for state, all in states.items()
                     if "Peak" not in state for snapshot in all]  # fmt: skip
        return {snapshot["cuda:0"]["Active"] - snapshot["cuda:0"]["Total"] for snapshot in snapshots}

    assert [CASES[case] for case in SMALL if unsplit(both[1][case]) != {0}] == []
    assert max(max(unsplit(both[1][case])) for case in LARGE) > 0


def test_torchs_reports_differ_between_the_cases(both):
    """Without this, the equality above could hold for empty output."""
    alike = {json.dumps([torchs["peak"], torchs["modules"]]) for torchs in both[1].values()}
    assert len(alike) > 0.9 * len(CASES)
    named = {category for torchs in both[1].values() for states in torchs["modules"].values() for snapshots in states.values()
             for snapshot in snapshots for category in books(snapshot, "cuda:0")}  # fmt: skip
    assert named >= {*TORCHS} - {"OptState"}


def with_state_as_temp(snapshot):
    held = dict(snapshot["cuda:0"])
    held["Temp"] = held.get("Temp", 0) + held.pop("OptState", 0)
    return held


def lasting_on_cpu(snapshot):
    """Multiplying a tensor by a number: Python makes a tensor of 8 bytes, which autograd keeps; in C++ it stays a number."""
    made = ("Activation", "Temp", "Total")
    return {category: bytes for category, bytes in books(snapshot, "cpu").items() if category not in made}


@pytest.mark.parametrize("case", IN_BOTH_LANGUAGES, ids=IN_BOTH_LANGUAGES.values())
def test_the_drop_in_reports_torchs_fsdp_as_the_cpp_tracker_reports_ours(ours_in_both_languages, case):
    """Each category, at each point of the step and in each state of each FSDP module."""
    ours, drop_in = (side[case] for side in ours_in_both_languages)
    assert books(drop_in["peak"], "cuda:0")["Total"] == drop_in["highest"] - WORKSPACES
    # C++ names the last optimizer state after its allocation, Python during it: a peak may lie between.
    places = {"the peak": tuple({"cuda:0": with_state_as_temp(side["peak"])} for side in (ours, drop_in))}
    assert ours["points"].keys() == drop_in["points"].keys()
    for point, snapshot in drop_in["points"].items():
        places[point] = ours["points"][point], snapshot
    mine, theirs = modules_of(ours), modules_of(drop_in)
    assert mine.keys() == theirs.keys()
    for name, states in theirs.items():
        assert {state: len(calls) for state, calls in mine[name].items()} == {
            state: len(calls) for state, calls in states.items()
        }
        for state, calls in states.items():
            for call, (one, other) in enumerate(zip(mine[name][state], calls)):
                places[name, state, call] = (unwound(case, one) if state == "Post-Forward AC" else one), other
    different = {}
    for place, (one, other) in places.items():
        if lines := differences(books(one, "cuda:0"), books(other, "cuda:0"), Naming("")):
            different[place] = lines
        if lines := differences(lasting_on_cpu(one), lasting_on_cpu(other), Naming("")):
            different[place, "cpu"] = lines
    fail_if(different, case)


def test_the_cases_cover_features_that_torchs_tracker_does_not_support(ours_in_both_languages):
    """Without this, the equality above could hold for empty output."""
    found = {
        (device, category)
        for case in fsdp_cases.drop_in_cases()
        for states in ours_in_both_languages[1][case]["modules"].values()
        for snapshots in states.values()
        for snapshot in snapshots
        for device, categories in snapshot.items()
        for category, bytes in categories.items()
        if bytes
    }
    beyond = {"All Gather Copy-Out", "All Gather Input", "All Reduce", "Post-Forward Shard"}
    assert found >= {("cuda:0", category) for category in beyond} | {("cpu", "Sharded Param"), ("cpu", "Sharded Grad")}
    grouped = next(case for case in fsdp_cases.drop_in_cases() if "group=1" in case)
    assert "FSDPGPT.tokens, FSDPGPT.norm, FSDPGPT.head" in ours_in_both_languages[1][grouped]["modules"]
