#!/usr/bin/env python3
"""pretend_for.py --python PATH: prints the folder of the pretend libraries for that interpreter's torch.

Set-up builds the libraries for the torch of .plimsoll/venv. Libraries for another torch are built on first use and stay in
.plimsoll/pretend. The script does not import torch, and runs with Python 3.9 or newer.

Exit codes: 0 with the folder on standard output; 2 if the torch is not supported; 1 if a build failed. Errors go to
standard error.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
STATE = os.path.join(HOME, ".plimsoll")
MAIN_BUILD = os.path.join(HOME, "build", "release")
OLDEST, NEWEST = (2, 5), (2, 13)
OLDEST_PYTHON = (3, 10)  # for python/plimsoll, which runs in that interpreter
SUPPORTED = "supported are the CUDA 12 and CUDA 13 builds of torch {}.{} to {}.{}, on Linux".format(*OLDEST, *NEWEST)


class Unsupported(Exception):
    """The message names the torch and the supported versions."""


class Torch(NamedTuple):
    lib: str  # torch/lib
    version: str  # "2.13.0+cu130"
    cuda_major: int


def find_torch(python: str) -> str:
    """The folder of the torch package that the interpreter would import."""
    program = (
        "import importlib.util as u, sys; s = u.find_spec('torch'); "
        "print('%d.%d' % sys.version_info[:2]); print(s.origin if s and s.origin else '')"
    )
    try:
        done = subprocess.run([python, "-c", program], capture_output=True, text=True)
    except OSError as error:
        raise Unsupported(f"{python} cannot be started ({error.strerror}): --python needs a Python interpreter")
    if done.returncode != 0:
        last_line = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"{python} does not work as a Python interpreter: {last_line}")
    answer = done.stdout.splitlines()[-2:]
    if len(answer) != 2:
        raise Unsupported(f"{python} does not work as a Python interpreter: it printed nothing")
    version, origin = answer
    if tuple(map(int, version.split("."))) < OLDEST_PYTHON:
        raise Unsupported(
            f"{python} is Python {version}, and plimsoll needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
        )
    if not origin:
        raise Unsupported(f"{python} has no torch installed; {SUPPORTED}")
    return os.path.dirname(os.path.realpath(origin))


def read_torch(package: str) -> Torch:
    try:
        with open(os.path.join(package, "version.py"), encoding="utf-8") as file:
            text = file.read()
    except OSError:
        raise Unsupported(f"the torch in {package} does not say its version (no version.py); {SUPPORTED}")
    version = _assigned(text, "__version__") or "of unknown version"
    cuda = _assigned(text, "cuda")
    lib = os.path.join(package, "lib")
    if cuda is None or not os.path.exists(os.path.join(lib, "libtorch_cuda.so")):
        raise Unsupported(f"torch {version} in {package} is not a CUDA build; {SUPPORTED}")
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if not numbers or not OLDEST <= (int(numbers[1]), int(numbers[2])) <= NEWEST:
        raise Unsupported(f"torch {version} in {package} is not supported; {SUPPORTED}")
    major = cuda.split(".")[0]
    if major not in ("12", "13"):
        raise Unsupported(f"torch {version} in {package} was built for CUDA {cuda}; {SUPPORTED}")
    return Torch(lib, version, int(major))


def _assigned(text: str, name: str) -> str | None:
    """The string given to `name` in a version.py, with or without a type hint."""
    found = re.search(rf"^{name}\s*(?::[^=]+)?=\s*'([^']+)'", text, re.MULTILINE)
    return found[1] if found else None


def is_main_build(torch: Torch) -> bool:
    venv = os.path.realpath(os.path.join(STATE, "venv"))
    return os.path.realpath(torch.lib).startswith(venv + os.sep)


def build_folder(torch: Torch) -> str:
    sizes = [(name, os.path.getsize(os.path.join(torch.lib, name))) for name in sorted(os.listdir(torch.lib))]
    key = hashlib.sha256(repr((torch.lib, sizes)).encode()).hexdigest()[:12]
    return os.path.join(STATE, "pretend", f"{torch.version}-{key}")


def is_fresh(folder: str) -> bool:
    try:
        made = os.path.getmtime(os.path.join(folder, "ready"))
    except OSError:
        return False
    return all(os.path.getmtime(path) <= made for path in _inputs())


def _inputs() -> Iterator[str]:
    for name in ("CMakeLists.txt", os.path.join("scripts", "cuda_headers.py")):
        yield os.path.join(HOME, name)
    for top in ("cmake", os.path.join("src", "plimsoll", "base"), os.path.join("src", "plimsoll", "pretend")):
        for folder, folders, files in os.walk(os.path.join(HOME, top)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield folder
            yield from (os.path.join(folder, name) for name in files)


def build(torch: Torch, folder: str) -> None:
    headers = os.path.join(STATE, "headers", f"cu{torch.cuda_major}")
    commands: list[tuple[str, list[str]]] = []
    if not os.path.exists(os.path.join(headers, "complete")):
        venv_python = os.path.join(STATE, "venv", "bin", "python")
        python = venv_python if os.path.exists(venv_python) else sys.executable
        fetch = [python, os.path.join(HOME, "scripts", "cuda_headers.py"), str(torch.cuda_major), headers]
        commands.append((f"fetching CUDA {torch.cuda_major}'s headers", fetch))
    configure = ["cmake", "-S", HOME, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    configure += ["-DPLIMSOLL_ONLY_PRETEND=ON", f"-DPLIMSOLL_TORCH_LIB={torch.lib}"]
    configure += [
        f"-DPLIMSOLL_CUDA_INCLUDE={os.path.join(headers, 'include')}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    commands.append((f"configuring the pretend GPU for torch {torch.version}", configure))
    commands.append((f"building the pretend GPU for torch {torch.version}", ["ninja", "-C", folder]))

    os.makedirs(folder, exist_ok=True)
    started = os.path.join(folder, "ready.new")
    with open(started, "w", encoding="utf-8"):
        pass
    log = os.path.join(folder, "build.log")
    with open(log, "w", encoding="utf-8") as output:
        for title, command in commands:
            print(f"plimsoll: {title} …", file=sys.stderr, flush=True)
            output.flush()
            if (
                subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode
                != 0
            ):
                _show_end(log)
                raise SystemExit(f"plimsoll: {title} failed. The whole output is in {log}")
    os.replace(started, os.path.join(folder, "ready"))  # The file has the time of the start.


def _show_end(log: str) -> None:
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file.read().splitlines()[-25:]:
            print(f"  | {line}", file=sys.stderr)


def pretend_folder(python: str) -> str:
    torch = read_torch(find_torch(python))
    if is_main_build(torch):
        folder = MAIN_BUILD
    else:
        folder = build_folder(torch)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with open(folder + ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_fresh(folder):
                build(torch, folder)
    return os.path.join(folder, "pretend")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, metavar="PATH", help="the interpreter that has the torch")
    try:
        print(pretend_folder(parser.parse_args().python))
    except Unsupported as error:
        print(f"plimsoll: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
