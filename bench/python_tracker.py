"""The cost of plimsoll.FSDPMemTracker, the drop-in for Python: Llama-3-8B with FSDP2 on 64 ranks, in one run.

- a step on the pretend GPU without and with a tracker, alternating, the fastest of each: without recomputation, and with full
  checkpointing, which calls modules twice; also a tracker's first step, and the time to make, enter, leave and drop it;
- the latter under FakeTensorMode with torch's own;
- the latter under `plimsoll run` with and without categories.

    python3 bench/python_tracker.py [STEPS]       (after ./plimsoll --version, which builds)
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
STEP = str(HOME / "bench" / "llama_step.py")


def run(folder: Path, steps: int, *flags: str, categories: bool = False) -> dict[str, Any]:
    out = folder / "out.json"
    options = ["--quiet", "--world-size", "64", *([] if categories else ["--no-categories"])]
    subprocess.run(
        [str(HOME / "plimsoll"), "run", *options, STEP, "llama3-8b", str(steps), str(out), *flags],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    figures: dict[str, Any] = json.loads(out.read_text())
    return figures


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    subprocess.run([str(HOME / "plimsoll"), "--version"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, flags in (("nothing recomputed", ["--no-checkpoint"]), ("full checkpointing", [])):
            figures = run(folder, steps, "--tracked", *flags)
            plain, first, tracked, around = (min(figures[kind]) for kind in ("plain", "first", "tracked", "around"))
            print(
                f"Llama-3-8B, FSDP2, 64 ranks, {what}, a step on the pretend GPU: {plain:.3f} s, with plimsoll's "
                f"FSDPMemTracker {tracked:.3f} s: {100 * (tracked / plain - 1):.1f} % more "
                f"(a tracker's first step {100 * (first / plain - 1):.1f} %; around the steps {around:.3f} s)"
            )
        fake = min(run(folder, 3, "--fake")["step_seconds"][1:])
        print(
            f"under FakeTensorMode with torch's FSDPMemTracker: {fake:.3f} s, {fake / tracked:.1f} times the tracked step"
        )
        seen = min(run(folder, steps, categories=True)["step_seconds"][1:])
        print(f"under plimsoll run with categories: {seen:.3f} s, {100 * (seen / plain - 1):.1f} % more than without")


if __name__ == "__main__":
    main()
