"""C++ FSDP2 has the same allocation events as Python's on the pretend GPU: from the sharding of the model through three steps,
as one rank of 1 to 1000."""

import itertools
import json
import os
import subprocess
from collections import Counter

import fsdp_cases
import needs
import pytest
import torchs_answers

PROGRAM = needs.PROGRAMS / "fsdp_memory"
ORACLE = needs.PYTHON_PROGRAMS / "fsdp_memory.py"
CASES = fsdp_cases.memory_cases()
ANSWERS = torchs_answers.Recorded("fsdp_memory", fsdp_cases.training_sources(ORACLE.name))


WHY_NOT = needs.why_not(PROGRAM, cuda=True)
pytestmark = [pytest.mark.recorded, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]


def start(command, cases, folder, env=None):
    """Starts a process that writes a line for each case; `lines_of` waits for it."""
    name = folder / f"{len(list(folder.iterdir()))}"
    name.with_suffix(".cases").write_text("\n".join(cases) + "\n")
    with name.with_suffix(".cases").open() as read, name.with_suffix(".json").open("w") as written:
        errors = name.with_suffix(".errors").open("w")
        process = subprocess.Popen(
            command, stdin=read, stdout=written, stderr=errors, env={**os.environ, **(env or {})}
        )
    return process, cases, name


def lines_of(process, cases, name):
    try:
        code = process.wait(timeout=600)
    finally:
        process.kill()
    assert code == 0, name.with_suffix(".errors").read_text()
    found = [json.loads(line) for line in name.with_suffix(".json").read_text().splitlines()]
    assert len(found) == len(cases)
    return dict(zip(cases, found))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The events of our FSDP2 and of torch's in each case."""
    folder = tmp_path_factory.mktemp("fsdp")
    ours = lines_of(*start([PROGRAM], list(CASES), folder))
    return ours, ANSWERS.ask(CASES, lambda cases: asked(cases, folder))


def asked(cases, folder):
    """Few cases run in one process; many cases run in two, because each process imports torch."""
    oracle, size = needs.python(ORACLE), max(10, (len(cases) + 1) // 2)
    parts = [cases[first : first + size] for first in range(0, len(cases), size)]
    processes = [start(oracle, part, folder, needs.pretend_gpu()) for part in parts]
    return {line: found for process in processes for line, found in lines_of(*process).items()}


def comparable(found):
    """Sorts frees that have no allocation between them: C++ destroys the variables of a function last to first, Python first
    to last, with the same result. The order in which a model is destroyed at the end also depends on the language."""
    drop = found["phases"].index("drop")
    events = [event for event in found["events"] if event[0] < drop]
    result = []
    for is_free, group in itertools.groupby(events, lambda event: event[1] == "free_completed"):
        group = [tuple(event) for event in group]
        result += sorted(group) if is_free else group
    return result


def named(found, event):
    if event is None:
        return "-"
    phase, action, segment, offset, size, stream = event
    return f"{found['phases'][phase]}: {action.split('_completed')[0]} {size} at {segment}+{offset} on {stream}"


def differences(ours, theirs, before=4, after=10):
    """The first difference in context, ours beside torch's."""
    one, other = comparable(ours), comparable(theirs)
    index = next(i for i, (a, b) in enumerate(itertools.zip_longest(one, other)) if a != b)
    first = max(0, index - before)
    rows = itertools.zip_longest(one[first : index + after], other[first : index + after])
    return [f"event {index} of {len(one)} (torch: {len(other)}); ours, torch's:"] + [
        f"{'*' if a != b else ' '}{first + i:5} {named(ours, a):60} {named(theirs, b)}" for i, (a, b) in enumerate(rows)
    ]


@pytest.mark.parametrize("line", CASES, ids=CASES.values())
def test_allocation_events_equal_torchs(both, line):
    ours, theirs = (side[line] for side in both)
    assert ours["phases"] == theirs["phases"]
    if comparable(ours) != comparable(theirs):
        pytest.fail("\n".join([line, *differences(ours, theirs)]), pytrace=False)


@pytest.mark.parametrize("line", CASES, ids=CASES.values())
def test_a_freed_model_leaves_no_memory(both, line):
    assert [side[line]["left"] for side in both] == [0, 0]


def test_pinned_memory_equals_torchs(both):
    """At the start of each phase, relative to the first phase."""

    def grown(found):
        return [[now - first for now, first in zip(bytes, found["pinned"][0])] for bytes in found["pinned"]]

    lines = [line for line in CASES if "offload=pin" in line]
    different = {
        CASES[line]: [grown(side[line]) for side in both]
        for line in lines
        if grown(both[0][line]) != grown(both[1][line])
    }
    assert all(max(grown(both[1][line]))[1] > 0 for line in lines)
    assert different == {}


def test_the_configurations_differ_in_their_allocations(both):
    """Without this, the equality above could hold for empty output."""
    lines = [line for line in CASES if line.startswith("world=8 rank=0 ")]
    alike = Counter(json.dumps(comparable(both[1][line])) for line in lines)
    assert all(len(comparable(both[1][line])) > 300 for line in lines)
    assert len(alike) > 0.7 * len(lines)
