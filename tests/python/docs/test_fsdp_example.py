"""examples/train_transformer.cpp as users start it: alone, with plain variables, under torchrun, stopped and resumed."""

import importlib.util as util
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from needs import BUILD

PROGRAM = BUILD / "examples" / "example_train_transformer"
SMALL = ["--layers", "2", "--dim", "32", "--heads", "2", "--context", "32", "--batch", "4", "--sample", "20"]

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM.name} is not built")
STEP = re.compile(r"step +(\d+)/\d+  loss (\d+\.\d+) +\d+ tokens/s")


def clean_environment():
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if name not in names}


def free_port():
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]


def start(*arguments, world=2):
    env = {**clean_environment(), "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    return [
        subprocess.Popen(
            [PROGRAM, *SMALL, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**env, "RANK": str(rank)},
        )
        for rank in range(world)
    ]


def finish(ranks):
    try:
        outputs = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [(rank.returncode, out, messages) for rank, (out, messages) in zip(ranks, outputs)]


def run(*arguments, world=2):
    """The output of rank 0; the other ranks print nothing."""
    done = finish(start(*arguments, world=world))
    assert [code for code, _, _ in done] == [0] * world, done
    assert all(out == "" for _, out, _ in done[1:])
    return done[0][1]


def losses(output):
    return {int(step): float(loss) for step, loss in STEP.findall(output)}


def test_one_process_needs_no_variables():
    done = subprocess.run(
        [PROGRAM, *SMALL, "--steps", "3", "--log-every", "1"], capture_output=True, text=True, env=clean_environment()
    )
    assert done.returncode == 0, done.stderr
    assert " parameters over 1 rank, 123563 characters of 60 kinds" in done.stdout
    assert list(losses(done.stdout)) == [1, 2, 3]


def test_the_loss_falls():
    seen = losses(run("--steps", 120))
    assert list(seen) == [20, 40, 60, 80, 100, 120]
    assert seen[120] < 0.8 * seen[20]


def test_a_resumed_run_prints_the_losses_of_an_uninterrupted_run(tmp_path):
    every = ["--log-every", 1, "--save-every", 10]
    straight = losses(run("--steps", 30, *every))
    first = run("--steps", 20, "--save", tmp_path, *every)
    assert f"saved step 20 in {tmp_path}" in first
    second = run("--steps", 30, "--save", tmp_path, "--resume", *every)
    assert f"resumed from step 20 in {tmp_path}" in second
    assert {**losses(first), **losses(second)} == straight
    assert list(losses(second)) == list(range(21, 31))


def test_a_killed_run_resumes_from_its_last_checkpoint(tmp_path):
    every = ["--log-every", 1, "--save-every", 4]
    ranks = start("--steps", 100000, "--save", tmp_path, *every)
    for line in ranks[0].stdout:
        if line.startswith("saved step 12 "):
            break
    ranks[1].send_signal(signal.SIGKILL)
    done = finish(ranks)
    assert done[0][0] == 1
    assert "example_train_transformer: " in done[0][2]
    last = newest(tmp_path)
    assert last >= 12
    resumed = run("--steps", last + 6, "--save", tmp_path, "--resume", *every)
    assert f"resumed from step {last} in {tmp_path}" in resumed
    straight = losses(run("--steps", last + 6, *every))
    assert losses(resumed) == {step: loss for step, loss in straight.items() if step > last}


def newest(folder):
    return max(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


def test_a_checkpoint_of_two_ranks_resumes_on_three_and_is_exported(tmp_path):
    run("--steps", 4, "--save", tmp_path / "run")
    output = run("--steps", 6, "--save", tmp_path / "run", "--resume", "--export", tmp_path / "out", world=3)
    assert "resumed from step 4" in output
    assert (tmp_path / "out" / "model.safetensors").exists()
    assert len(list((tmp_path / "run" / "step-00000006").glob("model-rank-*-of-00003.safetensors"))) == 3


@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
def test_torchrun_starts_the_example():
    preload = ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*")))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--no-python",
            "--nproc-per-node",
            "2",
            "--master-port",
            str(free_port()),
        ]
        + [str(PROGRAM), *SMALL, "--steps", "3", "--log-every", "1"],
        capture_output=True,
        text=True,
        env={**clean_environment(), "LD_PRELOAD": preload},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert " parameters over 2 ranks, " in done.stdout
    assert list(losses(done.stdout)) == [1, 2, 3]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--stpes", "3"], "unknown option --stpes"),
        (["--steps"], "--steps needs a value"),
        (["--steps", "many"], "--steps is many, expected a number"),
        (["--resume"], "--resume needs --save FOLDER to resume from"),
        (["--text", "/none"], "cannot read /none; give a text with --text FILE"),
    ],
)
def test_errors_explain_wrong_options(arguments, message):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=clean_environment())
    assert done.returncode == 1
    assert message in done.stderr
