"""C++ FSDP2 puts the same work on the streams of the pretend GPU as Python's, in the same order: each copy, kernel, matrix product
and collective, each recorded event and each wait. So the possible overlap is the same, and no wait is missing."""

import itertools
import json
import os
import subprocess

import fsdp_cases
import needs
import pytest
import torchs_answers

PROGRAM = needs.PROGRAMS / "fsdp_overlap"
ORACLE = needs.PYTHON_PROGRAMS / "fsdp_overlap.py"
PLACES = ((8, 0), (1, 0))
ANSWERS = torchs_answers.Recorded("fsdp_overlap", fsdp_cases.training_sources(ORACLE.name))
CASES = {line.replace("steps=3", "steps=2"): name for line, name in fsdp_cases.memory_cases(PLACES).items()}


WHY_NOT = needs.why_not(PROGRAM, cuda=True)
pytestmark = [pytest.mark.recorded, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]


def run(command, cases, folder, env=None):
    """{case: its work in the form of `comparable`}."""
    done = subprocess.run(
        [*command, str(folder)], input="\n".join(cases) + "\n", capture_output=True, text=True, timeout=600,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    phases = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        line: comparable(line, folder / str(index), of)
        for index, (line, of) in enumerate(zip(cases, phases, strict=True))
    }


def happenings(prefix, phases):
    """(phase, kind, stream, mark, communicator) for each piece of work of a case."""
    found = []
    for number, phase in enumerate(phases):
        for text in prefix.with_name(f"{prefix.name}.{number}").read_text().splitlines():
            kind, _, stream, mark, bytes, name = text.split(" ", 5)
            communicator = "0"
            if kind == "collective":
                name, communicator, rank, ranks, peer = name.split(" ")
                name = f"{name} rank {rank} of {ranks}, peer {peer}"
            found.append((phase, f"{kind} {bytes} {name}".strip(), stream, mark, communicator))
    return found


def comparable(line, prefix, phases):
    """Streams, marks and groups numbered by first use. On one rank torch records an event for an all-gather that does not run,
    and never waits for it: for one rank, events without a wait are left out."""
    found = happenings(prefix, phases)
    alone = fsdp_cases.words_of(line)["world"] == "1"
    waited = {mark for _, what, _, mark, _ in found if what.startswith(("wait", "synchronize"))}
    streams, marks, communicators, result = {}, {}, {}, []
    for phase, what, stream, mark, communicator in found:
        if alone and what.startswith("record") and mark not in waited:
            continue
        place = f"on {streams.setdefault(stream, len(streams))}"
        if mark != "0":
            place += f" mark {marks.setdefault(mark, len(marks))}"
        if communicator != "0":
            place += f" in {communicators.setdefault(communicator, len(communicators))}"
        result.append(f"{phase}: {what} {place}")
    return result


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    ours = run([PROGRAM], CASES, tmp_path_factory.mktemp("ours"))
    oracle = needs.python(ORACLE)
    return ours, ANSWERS.ask(
        CASES, lambda cases: run(oracle, cases, tmp_path_factory.mktemp("torchs"), needs.pretend_gpu())
    )


def first_difference(ours, theirs, before=6, after=10):
    pairs = list(itertools.zip_longest(ours, theirs, fillvalue="-"))
    index = next(i for i, (a, b) in enumerate(pairs) if a != b)
    first = max(0, index - before)
    rows = enumerate(pairs[first : index + after])
    return [f"{index} of {len(ours)} (torch: {len(theirs)}); ours, torch's:"] + [
        f"{'*' if a != b else ' '}{first + i:5} {a[:100]:102} {b[:100]}" for i, (a, b) in rows
    ]


@pytest.mark.parametrize("line", CASES, ids=CASES.values())
def test_work_events_and_waits_equal_torchs(both, line):
    ours, theirs = (side[line] for side in both)
    if ours != theirs:
        pytest.fail("\n".join([line, *first_difference(ours, theirs)]), pytrace=False)


def test_each_case_has_work_to_compare(both):
    line = next(line for line, name in CASES.items() if name == "fp32, rank 0 of 8")
    kinds = {text.split(": ", 1)[1].split(" ")[0] for text in both[0][line]}
    assert {"record", "wait", "launch", "gemm", "collective"} <= kinds


def test_communicators_of_different_groups_are_distinct(both):
    """With HSDP parameters are sharded in one group of ranks, and gradients reduced in another."""
    line = next(line for line, name in CASES.items() if name == "hsdp, rank 0 of 8")
    groups = {}
    for text in both[0][line]:
        if ": collective " in text:
            groups.setdefault(text.split(": ", 1)[1].split(" ")[2], set()).add(text.rsplit(" in ", 1)[1])
    assert groups["ncclAllGather"] == groups["ncclReduceScatter"] and len(groups["ncclAllReduce"]) == 1
    assert not groups["ncclAllReduce"] & groups["ncclAllGather"]
