"""C++ FSDP2 computes the numbers of Python's: losses, gradients and parameters of 2 and 4 gloo processes are equal to the bit in
each of up to ten steps. They equal training in one process within torch's own tolerance."""

import itertools
import json
import os
import socket
import subprocess
import sys

import fsdp_cases
import needs
import pytest

PROGRAM = needs.PROGRAMS / "fsdp_numbers"
ORACLE = needs.PYTHON_PROGRAMS / "fsdp_numbers.py"
WORLDS = (2, 4)
CASES = fsdp_cases.number_cases(WORLDS)
REFERENCES = [line for line in CASES if "reference=1" in line]


WHY_NOT = needs.why_not(PROGRAM)
pytestmark = [pytest.mark.recorded, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]


def free_port():
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]


def torchs_side():
    env = {**os.environ, **needs.pretend_gpu()}
    cases = "\n".join(CASES) + "\n"
    done = subprocess.run(
        [sys.executable, str(ORACLE)], input=cases, capture_output=True, text=True, timeout=600, env=env
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["ranks"], found["reference"]


def our_side(world):
    lines = [line for line in CASES if line.startswith(f"world={world} ")]
    env = {**os.environ, "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    pipe = subprocess.PIPE
    ranks = [
        subprocess.Popen([PROGRAM], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**env, "RANK": str(rank)})
        for rank in range(world)
    ]
    try:
        for rank in ranks:
            rank.stdin.write("\n".join(lines) + "\n")
            rank.stdin.close()
            rank.stdin = None
        found = []
        for rank in ranks:
            output, messages = rank.communicate(timeout=300)
            assert rank.returncode == 0, messages
            found.append(json.loads(output))
    finally:
        for rank in ranks:
            rank.kill()
    return {line: [rank[line] for rank in found] for line in lines}


@pytest.fixture(scope="module")
def torchs():
    return torchs_side()


@pytest.fixture(scope="module")
def ours():
    return dict(itertools.chain.from_iterable(our_side(world).items() for world in WORLDS))


def first_difference(ours, theirs):
    """(place, ours, torch's) of the first difference in the order of training."""
    for rank, (one, other) in enumerate(zip(ours, theirs)):
        if one["shapes"] != other["shapes"]:
            return f"rank {rank}: shapes of the shards", one["shapes"], other["shapes"]
    names = list(theirs[0]["shapes"])
    for step in range(len(theirs[0]["losses"])):
        for what, at in (("losses", [f"micro-batch {i}" for i in range(2)]), ("gradients", names)):
            for rank, (one, other) in enumerate(zip(ours, theirs)):
                for name, a, b in zip(at, one[what][step], other[what][step]):
                    if a != b:
                        return f"step {step}, rank {rank}: {what} of {name}", a, b
    for what in ("full_gradients", "full_parameters"):
        for rank, (one, other) in enumerate(zip(ours, theirs)):
            if one[what] != other[what]:
                name = next(name for name in names if one[what].get(name) != other[what].get(name))
                return f"rank {rank}: {what} of {name}", one[what].get(name), other[what].get(name)
    return None


@pytest.mark.parametrize("line", CASES, ids=CASES.values())
def test_losses_gradients_and_parameters_equal_torchs_to_the_bit(ours, torchs, line):
    assert len(ours[line]) == len(torchs[0][line]) == int(fsdp_cases.words_of(line)["world"])
    difference = first_difference(ours[line], torchs[0][line])
    if difference is not None:
        pytest.fail("\n".join([line, "{}: ours {}, torch's {}".format(*difference)]), pytrace=False)


def close(one, other):
    """torch.testing's tolerance for float32."""
    return all(abs(a - b) <= 1e-5 + 1.3e-6 * abs(b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("line", REFERENCES, ids=[CASES[line] for line in REFERENCES])
def test_training_in_one_process_agrees_within_torchs_tolerance(torchs, line):
    """For torch's numbers, which equal ours to the bit."""
    ranks, reference = torchs[0][line], torchs[1][line]
    for rank, losses in zip(ranks, reference["last_losses"]):
        assert close(rank["last_losses"], losses)
    whole = ranks[0]["last_gradients"]
    assert whole.keys() >= reference["last_gradients"].keys()
    far = [name for name, gradient in reference["last_gradients"].items() if not close(whole[name], gradient)]
    assert not far


def test_training_changes_the_parameters(torchs):
    """Without this, the equality above could hold for empty output."""
    for line, ranks in torchs[0].items():
        steps = int(fsdp_cases.words_of(line)["steps"])
        assert len({json.dumps(step) for step in ranks[0]["gradients"]}) == steps >= 3, line
        assert len({json.dumps(rank["losses"]) for rank in ranks}) == len(ranks), line
