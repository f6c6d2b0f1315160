"""A rank is killed during training: the other ranks do not hang, and end with an error that names collective and module."""

import os
import re
import signal
import socket
import subprocess

import pytest
from needs import BUILD

PROGRAM = BUILD / "tests" / "programs" / "fsdp_fault"
PATIENCE = 40  # Seconds; the program's own timeout for a collective is 20.

# The root's own parameters belong to no submodule, so there is no name.
NAMED = re.compile(
    r"(all_gather_single|reduce_scatter_single|all_reduce) for (the root module|[\w.]+) on rank \d of the group of ranks .* failed: "
)

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM.name} is not built")


def free_port():
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]


def start(world, options):
    env = {**os.environ, "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    pipe = subprocess.PIPE
    return [
        subprocess.Popen([PROGRAM, *options], stdout=pipe, stderr=pipe, text=True, env={**env, "RANK": str(rank)})
        for rank in range(world)
    ]


@pytest.mark.parametrize("killed", ["first", "last"])
@pytest.mark.parametrize("world, options", [(2, []), (4, []), (4, ["--hsdp"])], ids=["2 ranks", "4 ranks", "2x2 ranks"])
def test_others_end_with_an_error_that_names_the_collective(world, options, killed):
    ranks = start(world, options)
    try:
        # Rank 0 hosts the store; the other ranks do not need it once they train.
        victim = ranks[0 if killed == "first" else -1]
        while victim.stdout.readline() != "step 3\n":
            assert victim.poll() is None, victim.stderr.read()
        victim.send_signal(signal.SIGKILL)
        for rank in ranks:
            if rank is victim:
                continue
            _, messages = rank.communicate(timeout=PATIENCE)
            assert rank.returncode == 3, messages
            assert NAMED.search(messages), messages
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
