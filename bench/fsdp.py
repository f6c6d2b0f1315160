"""The cost of a step under FSDP2, ours in C++ and torch's in Python, in one run:

- a small transformer on 2 gloo ranks, in several configurations;
- the host's work for one FSDP module: a row of modules with next to no compute on the pretend GPU, sharded and not;
- a step of Llama-3-8B's shape on the pretend GPU, one of 8, 64, 1,024 and 16,384 ranks.

    python3 bench/fsdp.py        (after ./plimsoll --version and ninja -C build/release bench_fsdp_step)
"""

import json
import os
import socket
import statistics
import subprocess
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PLIMSOLL_HOME": str(HOME)}
PROGRAM = str(BUILD / "bench" / "bench_fsdp_step")
# Not under `plimsoll run`, which makes each rank a lone rank.
TORCHS = [str(HOME / ".plimsoll" / "venv" / "bin" / "python"), str(HOME / "bench" / "torch_fsdp_step.py")]
PRETEND = {"LD_PRELOAD": ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*")))}
CONFIGURATIONS = ("fp32", "bf16", "keep", "no_sync", "offload")
BLOCKS = 200


def alone(*words: object) -> dict[str, list[float]]:
    done = subprocess.run(
        [PROGRAM, *map(str, words)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    return json.loads(done.stdout)


def torch_alone(*words: object) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        subprocess.run(
            [*TORCHS, *map(str, words), str(out)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**ENVIRONMENT, **PRETEND},
        )
        return json.loads(out.read_text())


def on_two_ranks(command: list[str], more: dict[str, str] = {}) -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                **ENVIRONMENT,
                **more,
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=300)[0] for rank in ranks]
    for rank in ranks:
        assert rank.returncode == 0, command
    return said[0]


def gloo(configuration: str, steps: int) -> None:
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        for _ in range(3):  # Alternating, so that other load hits both.
            ours += json.loads(on_two_ranks([PROGRAM, "gloo", str(steps), configuration]))["steps"]
            on_two_ranks([*TORCHS, "gloo", str(steps), configuration, str(out)], PRETEND)
            theirs += json.loads(out.read_text())["steps"]
    print(
        f"gloo, 2 ranks, {configuration}: a step {statistics.median(ours) * 1e3:.1f} ms, torch's {statistics.median(theirs) * 1e3:.1f} ms: "
        f"{statistics.median(theirs) / statistics.median(ours):.2f} times as long (fastest: {min(theirs) / min(ours):.2f})"
    )


def per_module(seconds: dict[str, list[float]]) -> float:
    return (min(seconds["sharded"]) - min(seconds["plain"])) / BLOCKS


def main() -> None:
    for configuration in CONFIGURATIONS:
        gloo(configuration, 30)
    ours, theirs = per_module(alone("blocks", 64, 20, BLOCKS)), per_module(torch_alone("blocks", 64, 10, BLOCKS))
    print(
        f"the host's work for one FSDP module and step, 64 ranks: {ours * 1e6:.0f} us, torch's {theirs * 1e6:.0f} us: {theirs / ours:.1f} times as long"
    )
    for world_size in (8, 64, 1024, 16384):
        print(
            f"Llama-3-8B's shape, a step of one of {world_size:,} ranks: {min(alone('llama', world_size, 20)['steps']) * 1e3:.1f} ms"
        )


if __name__ == "__main__":
    main()
