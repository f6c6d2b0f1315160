"""The cost of FSDPMemTracker, in one run:

- a step of Llama-3-8B's shape, one of 64 ranks, tracked: ours in C++ on the pretend GPU, and torch's under FakeTensorMode;
- the cost of tracking over an untracked step of ours;
- a step of Llama-3-405B's shape (126 layers), one of 16,384 ranks, and the memory of the process that takes it.

    python3 bench/fsdp_tracker.py        (after ./plimsoll --version and ninja -C build/release bench_tracked_fsdp_step)
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
PRETEND = {"LD_PRELOAD": ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*")))}
PYTHON = str(HOME / ".plimsoll" / "venv" / "bin" / "python")


def ours(shape, world_size, steps):
    command = [str(BUILD / "bench" / "bench_tracked_fsdp_step"), shape, str(world_size), str(steps)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    return json.loads(done.stdout)


def torchs(world_size, steps):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [PYTHON, str(HOME / "bench" / "torch_tracked_fsdp_step.py"), str(world_size), str(steps), str(out)]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**ENVIRONMENT, **PRETEND}
        )
        return json.loads(out.read_text())


def main():
    fast, slow = ours("8b", 64, 20), torchs(64, 4)
    step, theirs = min(fast["tracked"]), min(slow["tracked"][1:])
    print(
        f"Llama-3-8B's shape, one of 64 ranks, a tracked step: {step * 1e3:.1f} ms, torch's under FakeTensorMode {theirs:.2f} s: "
        f"{theirs / step:.0f} times as long"
    )
    print(
        f"tracking adds {(step / min(fast['plain']) - 1) * 100:.0f} % to ours ({min(fast['plain']) * 1e3:.1f} ms plain)"
    )
    totals = [found["peak"]["cuda:0"]["Total"] / 2**30 for found in (fast, slow)]
    print(f"peaks: {totals[0]:.2f} GiB, torch's {totals[1]:.2f} GiB")
    large = ours("405b", 16384, 5)
    print(
        f"Llama-3-405B's shape, one of 16,384 ranks, a tracked step: {min(large['tracked']):.3f} s (slowest {max(large['tracked']):.3f} s); "
        f"resident at most {large['resident'] / 2**20:.0f} MiB; peak {large['peak']['cuda:0']['Total'] / 2**30:.2f} GiB"
    )


if __name__ == "__main__":
    main()
