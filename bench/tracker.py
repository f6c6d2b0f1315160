"""The cost of tracking memory, ours and torch's, in one run:

- a real training step on CPU (transformer, 8 layers, dim 512), with MemTracker in C++ and with torch's in Python;
- a step of Llama-3-8B's shape in C++ on the pretend GPU, plain and tracked, against FakeTensorMode with torch's MemTracker.

    python3 bench/tracker.py        (after ./plimsoll --version and ninja -C build/release bench_tracked_step)
"""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PLIMSOLL_HOME": str(HOME)}


def ours(mode: str, steps: int) -> dict[str, list[float]]:
    done = subprocess.run(
        [str(BUILD / "bench" / "bench_tracked_step"), mode, str(steps)],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    return json.loads(done.stdout)


def torchs(mode: str, steps: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        subprocess.run(
            [
                str(BUILD / "bin" / "plimsoll"),
                "run",
                "--quiet",
                str(HOME / "bench" / "torch_tracker_step.py"),
                mode,
                str(steps),
                str(out),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        return json.loads(out.read_text())


def ratio(seconds: dict[str, list[float]]) -> float:
    """The median ratio of each tracked step to the plain step beside it, so that other load hits both."""
    return statistics.median(t / p for t, p in zip(seconds["tracked"], seconds["plain"]))


def main() -> None:
    mine, theirs = ours("cpu", 15), torchs("cpu", 7)
    print(
        f"CPU, a real step: {min(mine['plain']):.3f} s plain; MemTracker in C++ adds {ratio(mine) - 1:+.1%} (fastest steps: "
        f"{min(mine['tracked']) / min(mine['plain']) - 1:+.1%}), torch's in Python {ratio(theirs) - 1:+.1%}"
    )
    gpu, fake = ours("llama", 40), torchs("fake", 2)
    print(
        f"Llama-3-8B's shape, a step on the pretend GPU: {min(gpu['plain']) * 1e3:.1f} ms plain, "
        f"{min(gpu['tracked']) * 1e3:.1f} ms tracked: {ratio(gpu) - 1:+.1%} (fastest steps: "
        f"{min(gpu['tracked']) / min(gpu['plain']) - 1:+.1%})"
    )
    print(
        f"the same under FakeTensorMode with torch's MemTracker: {min(fake['tracked']):.2f} s, "
        f"{min(fake['tracked']) / min(gpu['tracked']):.0f} times as long"
    )


if __name__ == "__main__":
    main()
