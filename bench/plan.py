"""The cost of `plimsoll plan`, in one run:

- `plan llama3-8b --gpus 64`, process start to end, and its two steps by themselves, against the same two steps under
  FakeTensorMode with torch's FSDPMemTracker;
- `plan llama3-405b --gpus 16384`: seconds, and the memory of the process;
- a sweep of 200 combinations of an 8B model.

    python3 bench/plan.py        (after ./plimsoll --version, which builds)
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("PLIMSOLL_BUILD", HOME / "build" / "release"))
PLIMSOLL = str(BUILD / "bin" / "plimsoll")
PYTHON = str(HOME / ".plimsoll" / "venv" / "bin" / "python")
PRETEND = {
    "LD_PRELOAD": ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*"))),
    "OMP_NUM_THREADS": "1",
}
SWEEP = ["--gpus", "8,16,32,64,128", "--batch", "1..8", "--checkpoint", "none,selective,full,every:2,every:4"]


def timed(*arguments, expect=(0, 3)):
    """The seconds of a command from start to end, and its output."""
    began = time.perf_counter()
    done = subprocess.run(
        [PLIMSOLL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PLIMSOLL_HOME": str(HOME)},
    )
    seconds = time.perf_counter() - began
    assert done.returncode in expect, arguments
    return seconds, done.stdout.decode()


def torchs(folder, steps):
    config, out = folder / "config.json", folder / "out.json"
    config.write_text(timed("models", "llama3-8b")[1])
    command = [PYTHON, str(HOME / "bench" / "torch_plan.py"), str(config), "64", "8192", str(steps), str(out)]
    began = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **PRETEND}
    )
    return time.perf_counter() - began, sum(json.loads(out.read_text())["steps"])


def main():
    plans = [timed("plan", "llama3-8b", "--gpus", "64", "--json", "-") for _ in range(5)]
    whole = min(seconds for seconds, _ in plans)
    steps = min(json.loads(text)["planner_step_seconds"] for _, text in plans)
    with tempfile.TemporaryDirectory() as name:
        their_whole, their_steps = torchs(Path(name), 2)
    print(
        f"plan llama3-8b --gpus 64: {whole:.2f} s from start to end, its two steps {steps * 1e3:.0f} ms (the best of 5); torch under "
        f"FakeTensorMode with FSDPMemTracker {their_whole:.1f} s and {their_steps:.1f} s: {their_whole / whole:.0f} and "
        f"{their_steps / steps:.0f} times as long"
    )

    began = time.perf_counter()
    large = subprocess.Popen(
        [PLIMSOLL, "plan", "llama3-405b", "--gpus", "16384", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PLIMSOLL_HOME": str(HOME)},
    )
    _, _, usage = os.wait4(large.pid, 0)  # The maximum of the command and the processes that it started.
    print(
        f"plan llama3-405b --gpus 16384: {time.perf_counter() - began:.2f} s, resident at most {usage.ru_maxrss / 1024:.0f} MiB"
    )

    seconds, text = timed("sweep", "llama3-8b", *SWEEP, "--csv")
    rows = len(text.splitlines()) - 1
    print(f"a sweep of {rows} combinations of an 8B model: {seconds:.1f} s on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
