"""The pretend libraries are used even if NVIDIA's packages are installed beside torch, or a CUDA toolkit is on the library path.

Libraries of the same names in the same folders stand in for the packages, and record when they are loaded.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from needs import BUILD

# Libraries that the wheels of CUDA 13 install outside of nvidia/cu13/lib.
FOLDERS = {"libcudnn": "cudnn", "libnccl": "nccl", "libcusparseLt": "cusparselt", "libnvshmem_host": "nvshmem"}
# The kernel driver installs these; no wheel has them.
OF_THE_DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
# A wheel has it and torch loads it by path. Nothing loads it by name, so there is no pretend version.
NOT_PRETENDED = "libnvrtc-builtins.so.13.0"

MARKER = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) {
  const char* log = getenv("LOADED_LOG");
  FILE* file = log == 0 ? 0 : fopen(log, "a");
  if (file == 0) return;
  fputs(NAME "\\n", file);
  fclose(file);
}
"""

SCRIPT = """
import torch
x = torch.randn(64, 64, device="cuda", requires_grad=True)
(x @ x).sum().backward()
torch.nn.functional.conv2d(torch.randn(1, 3, 8, 8, device="cuda"), torch.randn(4, 3, 3, 3, device="cuda"))
torch.fft.fft(torch.randn(64, device="cuda"))
torch.linalg.inv(torch.randn(4, 4, device="cuda"))
torch.cuda.nvtx.range_push("x"); torch.cuda.nvtx.range_pop()
torch.cuda.nccl.version()
with open("/proc/self/maps") as maps:
    mapped = {line.split(None, 5)[5].strip() for line in maps if "/lib" in line}
open("mapped", "w").write("\\n".join(sorted(mapped)))
"""


def sonames():
    return sorted(path.name for path in (BUILD / "pretend").glob("lib*.so.*"))


@pytest.fixture(scope="module")
def markers(tmp_path_factory):
    """A stand-in for each of NVIDIA's libraries, by SONAME."""
    compiler = shutil.which("cc") or shutil.which("g++")
    if compiler is None or not sonames() or importlib.util.find_spec("torch") is None:
        pytest.skip("needs a C compiler, torch and the pretend libraries")
    folder = tmp_path_factory.mktemp("markers")
    (folder / "marker.c").write_text(MARKER)
    for soname in [*sonames(), NOT_PRETENDED]:
        command = [compiler, "-x", "c", "-shared", "-fPIC", f'-DNAME="{soname}"', f"-Wl,-soname,{soname}"]
        subprocess.run([*command, "-o", str(folder / soname), str(folder / "marker.c")], check=True)
    return folder


@pytest.fixture(scope="module")
def interpreter(markers, tmp_path_factory):
    """An interpreter with torch and all of NVIDIA's folders in its site-packages.

    The files of torch/lib are linked one by one, because a library looks for its neighbours beside the path that was opened.
    """
    torch = Path(importlib.util.find_spec("torch").origin).parent
    prefix = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)}))
    (site / "torch" / "lib").mkdir(parents=True)
    for source, target in ((torch, site / "torch"), (torch / "lib", site / "torch" / "lib")):
        for entry in source.iterdir():
            if entry != torch / "lib":
                (target / entry.name).symlink_to(entry)
    (site / "others.pth").write_text(f"{torch.parent}\n")
    for soname in [*sonames(), NOT_PRETENDED]:
        if soname not in OF_THE_DRIVER:
            folder = site / "nvidia" / FOLDERS.get(soname.split(".so")[0], "cu13") / "lib"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(markers / soname, folder)
    return prefix / "bin" / "python"


def test_a_stand_in_records_that_it_was_loaded(markers, tmp_path):
    program = f"import ctypes; ctypes.CDLL({str(markers / 'libcudnn.so.9')!r})"
    log = tmp_path / "loaded"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "LOADED_LOG": str(log)}, check=True)
    assert log.read_text() == "libcudnn.so.9\n"


def test_without_plimsoll_torch_loads_the_packages(interpreter):
    """Without this the next test would prove nothing."""
    library = next(interpreter.parents[1].glob("lib/python3*/site-packages/torch/lib/libtorch_cuda.so"))
    found = subprocess.run(["ldd", str(library)], capture_output=True, text=True).stdout
    needed = [line.split(" => ") for line in found.splitlines() if line.split()[0] in sonames()]
    assert len(needed) >= 8
    for soname, path in needed:
        assert "/nvidia/" in path, soname


def check_ours_alone(run, folder):
    assert run.code == 0, run.stderr
    assert run.stderr == ""
    loaded = (folder / "loaded").read_text().split() if (folder / "loaded").exists() else []
    assert set(loaded) <= {NOT_PRETENDED}
    mapped = [Path(line) for line in (folder / "mapped").read_text().splitlines()]
    of_nvidia = {path for path in mapped if path.name in sonames()}
    assert {path.name for path in of_nvidia} == set(sonames())
    assert {path.parent.name for path in of_nvidia} == {"pretend"}


def test_the_packages_beside_torch_are_never_loaded(plimsoll_run, script, interpreter, tmp_path):
    run = plimsoll_run("--python", interpreter, script(SCRIPT), env={"LOADED_LOG": str(tmp_path / "loaded")})
    check_ours_alone(run, tmp_path)


def test_a_toolkit_on_the_library_path_is_never_loaded(plimsoll_run, script, markers, tmp_path):
    env = {"LOADED_LOG": str(tmp_path / "loaded"), "LD_LIBRARY_PATH": str(markers)}
    check_ours_alone(plimsoll_run(script(SCRIPT), env=env), tmp_path)


def test_nothing_is_printed_when_torch_is_imported(plimsoll_run, script):
    run = plimsoll_run("--quiet", script("import torch; torch.cuda.init()"))
    assert (run.code, run.stdout, run.stderr) == (0, "", "")
