"""The cost of a step on the pretend GPU, in one run:

- Llama-3-8B with FSDP2 on 64 ranks under `plimsoll run`, against FakeTensorMode with torch's FSDPMemTracker, in a Python without
  the observer of `plimsoll run`;
- the same at 8 and at 16,384 ranks, alternating, so that other load hits both;
- an operator;
- Llama-3-405B on 1,024 ranks, from start to end.

    python3 bench/compare.py        (after ./plimsoll --version, which builds)
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
# One thread, as under `plimsoll run`.
PRETEND = {
    "LD_PRELOAD": ":".join(str(path) for path in sorted((BUILD / "pretend").glob("*.so*"))),
    "OMP_NUM_THREADS": "1",
}
STEP = str(HOME / "bench" / "llama_step.py")
TURNS = 4

ELEMENTWISE = """
import json, sys, time, torch
x = torch.empty(1024, device="cuda")
for _ in range(1000): x.add_(1)
began = time.perf_counter()
for _ in range(20000): x.add_(1)
print(json.dumps({"op_seconds": (time.perf_counter() - began) / 20000}), file=open(sys.argv[1], "w"))
"""


def timed(out: Path, command: list[str], **environment: str) -> dict:
    """The figures that a script wrote, and the wall time of the whole command."""
    began = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    return {**json.loads(out.read_text()), "wall_seconds": time.perf_counter() - began}


def on_the_pretend_gpu(out: Path, world_size: int, *script: str, gpu: str = "H100-80GB") -> dict:
    return timed(out, [PLIMSOLL, "run", "--quiet", "--gpu", gpu, "--world-size", str(world_size), *script])


def with_fake_tensors(out: Path, world_size: int, *script: str) -> dict:
    """torch's CUDA build does not load without some libraries. The pretend libraries stand in, and nothing calls them."""
    return timed(out, [PYTHON, *script, "--fake"], WORLD_SIZE=str(world_size), **PRETEND)


def steady(*runs: dict) -> float:
    """The fastest step after the first, which creates the optimizer's state: other load disturbs it least."""
    return min(seconds for run in runs for seconds in run["step_seconds"][1:] or run["step_seconds"])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "out.json"
        llama = (STEP, "llama3-8b", "4", str(out))
        ours, fake = on_the_pretend_gpu(out, 64, *llama), with_fake_tensors(out, 64, *llama)
        print(
            f"Llama-3-8B, FSDP2, 64 ranks, a step: {steady(ours):.3f} s under plimsoll run, {steady(fake):.3f} s under "
            f"FakeTensorMode with FSDPMemTracker: {steady(fake) / steady(ours):.1f} times as long",
            flush=True,
        )

        runs: dict[int, list[dict]] = {8: [], 16384: []}
        for _ in range(TURNS):
            for world_size, kept in runs.items():
                kept.append(on_the_pretend_gpu(out, world_size, *llama))
        few, many = (steady(*kept) for kept in runs.values())
        print(
            f"the same in {TURNS} turns at 8 and at 16,384 ranks, the fastest step of each: {few:.3f} s and {many:.3f} s; "
            f"ratio {many / few:.2f}",
            flush=True,
        )
        few, many = (min(run["wall_seconds"] for run in kept) for kept in runs.values())
        print(f"the whole run, the fastest of each: {few:.1f} s and {many:.1f} s; ratio {many / few:.2f}", flush=True)

        script = folder / "elementwise.py"
        script.write_text(ELEMENTWISE)
        print(
            f"an operator (add_): {on_the_pretend_gpu(out, 1, str(script), str(out))['op_seconds'] * 1e6:.2f} us",
            flush=True,
        )

        large = on_the_pretend_gpu(out, 1024, STEP, "llama3-405b", "1", str(out), gpu="B200-180GB")
        print(
            f"Llama-3-405B, FSDP2, 1,024 ranks, on B200s, one step: {large['wall_seconds']:.1f} s in all; build on meta and sharding "
            f"{large['build_seconds']:.1f} s, step {large['step_seconds'][0]:.1f} s"
        )


if __name__ == "__main__":
    main()
