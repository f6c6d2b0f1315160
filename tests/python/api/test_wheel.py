"""The wheel that `pip wheel` makes, installed in its own environment away from the sources.

The trackers for CPU builds of torch are tested in a process that treats its torch as a CPU build. PLIMSOLL_CPU_PYTHON can name an
interpreter with a real CPU build of torch 2.13 for them.
"""

import email
import fcntl
import json
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from needs import HOME

import plimsoll

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

BUILD = HOME / "build" / "release"
VENV = HOME / ".plimsoll" / "venv"


def environment(**variables):
    """The environment of this process without the variables that lead to the sources."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PLIMSOLL_", "PYTHON"))}
    return {**ours, **variables}


def call(*command, cwd="/", **variables):
    env = environment(**variables)
    return subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, timeout=1800)


def site_packages(venv):
    return next((venv / "lib").glob("python3*/site-packages"))


def has_cuda():
    return (site_packages(VENV) / "torch" / "lib" / "libtorch_cuda.so").exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, made from the build folder of ./plimsoll, so that little is compiled."""
    if Path(sys.prefix).resolve() != VENV.resolve() or not (BUILD / "build.ninja").exists():
        pytest.skip("only ./check's interpreter has the packages that build the wheel")
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    with open(HOME / ".plimsoll" / "lock", "w") as lock:  # the lock of scripts/setup.sh, which builds there too
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = call(
            sys.executable, "-m", "pip", "wheel", *options, "-C", f"build-dir={BUILD}", "-w", folder, ".", cwd=HOME
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    """A new environment with the wheel and a path to the installed torch."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    made = call(sys.executable, "-m", "venv", "--without-pip", folder)
    assert made.returncode == 0, made.stderr
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder / "bin" / "python"]
    installed = call(*pip, "install", "--no-deps", "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    (site_packages(folder) / "torch_of_the_project.pth").write_text(f"{site_packages(VENV)}\n")
    return folder


@pytest.fixture
def with_cuda():
    if not has_cuda():
        pytest.skip("torch is not a CUDA build")


# -- the file --------------------------------------------------------------------------------------------------------------


def test_the_wheel_has_the_package_its_programs_and_the_pretend_gpu(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        programs = {info.filename for info in archive.infolist() if info.external_attr >> 16 & 0o111}
    package = HOME / "python" / "plimsoll"
    files = (file for file in package.rglob("*") if file.is_file() and file.parent.name != "__pycache__")
    sources = {str(file.relative_to(package.parent)) for file in files}
    profiles = {f"plimsoll/profiles/{file.name}" for file in (HOME / "src/plimsoll/pretend/profiles").glob("*.json")}
    modules = {f"plimsoll/{file.name}" for file in (BUILD / "python" / "plimsoll").glob("_C*.so")}
    libraries = {f"plimsoll/pretend/{file.name}" for file in (BUILD / "pretend").iterdir()} if has_cuda() else set()
    commands = {"plimsoll/bin/plimsoll"} | ({"plimsoll/bin/plimsoll-planner"} if has_cuda() else set())
    info = {name for name in names if name.startswith(f"plimsoll-{plimsoll.__version__}.dist-info/")}
    assert "plimsoll/py.typed" in sources and "plimsoll/run/process/activation/sitecustomize.py" in sources
    assert len(modules) == (2 if has_cuda() else 1) and len(profiles) > 5
    assert names - info == sources | profiles | modules | libraries | commands
    assert commands <= programs


def test_the_wheels_metadata_names_its_version_and_requirements(wheel):
    info = f"plimsoll-{plimsoll.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        assert archive.read(f"{info}/licenses/LICENSE") == (HOME / "LICENSE").read_bytes()
    assert (metadata["Name"], metadata["Version"]) == ("plimsoll", plimsoll.__version__)
    assert metadata.get_all("Requires-Dist") == ["torch==2.13.*"]
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert "plimsoll = plimsoll.command:main" in entry_points
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name == f"plimsoll-{plimsoll.__version__}-{tag}-{tag}-linux_x86_64.whl"


# -- installed -------------------------------------------------------------------------------------------------------------


def test_the_installed_package_is_imported_and_has_one_version(venv, tmp_path):
    program = "import plimsoll, importlib.metadata as m; print(plimsoll.__file__, m.version('plimsoll'), plimsoll.__version__)"
    done = call(venv / "bin" / "python", "-c", program, cwd=tmp_path)
    version = plimsoll.__version__
    assert done.stdout.split() == [str(site_packages(venv) / "plimsoll" / "__init__.py"), version, version], done.stderr
    assert version in call(venv / "bin" / "plimsoll", "--version", cwd=tmp_path).stdout.split()


def test_profiles_come_from_the_package_unless_the_sources_are_named(venv, tmp_path):
    package = site_packages(venv) / "plimsoll"
    for command in ([venv / "bin" / "plimsoll"], [venv / "bin" / "python", "-m", "plimsoll"]):
        assert f"is a file in {package}/profiles that names its sources." in call(*command, "gpus", cwd=tmp_path).stdout
        named = call(*command, "gpus", cwd=tmp_path, PLIMSOLL_HOME=str(HOME))
        assert f"is a file in {HOME}/src/plimsoll/pretend/profiles that names its sources." in named.stdout


def test_plan_prints_the_same_as_in_the_source_tree(venv, tmp_path, with_cuda):
    arguments = ["plan", "llama3-8b", "--gpus", "8", "--quiet"]
    done = call(venv / "bin" / "plimsoll", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fits, but only just: ")
    assert done.stdout == call(BUILD / "bin" / "plimsoll", *arguments, PLIMSOLL_HOME=str(HOME)).stdout


SCRIPT = """
    import json
    import sys
    import plimsoll
    import torch

    if "as a CPU build" in sys.argv:
        torch.version.cuda = None
    assert "CPU build" not in sys.argv or torch.version.cuda is None
    model = torch.nn.Linear(64, 32)
    optimizer = torch.optim.AdamW(model.parameters())
    with plimsoll.MemTracker() as tracker:
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
    peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]
    native = [name for name in sys.modules if name.startswith("plimsoll._C")]
    books = {getattr(category, "value", category): bytes for category, bytes in peak.items() if bytes}
    print(json.dumps([plimsoll.__file__, native, books]))
"""


def check_script(done, package, native):
    assert done.returncode == 0, done.stdout + done.stderr
    file, loaded, books = json.loads(done.stdout.splitlines()[0])
    assert (file, loaded) == (str(package / "__init__.py"), [native])
    weight, bias, number = 64 * 32 * 4, 32 * 4, 4
    # The peak is in the optimizer's step. Each parameter has two moments and a step count. Temporaries are the root of the
    # weight's second moment, its quotient, and two numbers that become tensors, one of them in double precision.
    state = {"Parameter": weight + bias, "Gradient": weight + bias, "Optstate": 2 * (weight + bias + number)}
    temporaries = 2 * weight + 3 * number
    assert books == {**state, "Temp": temporaries, "Total": sum(state.values()) + temporaries}


def test_a_script_is_tracked_on_the_cpu_under_run(venv, tmp_path, with_cuda):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    done = call(venv / "bin" / "plimsoll", "run", "--quiet", "train.py", cwd=tmp_path)
    check_script(done, site_packages(venv) / "plimsoll", "plimsoll._C")


def test_estimate_runs_in_the_interpreter_that_has_the_package(venv, tmp_path, with_cuda):
    program = (
        "import plimsoll; e = plimsoll.estimate('torch:empty', 1 << 30, device='cuda'); print(e.fits, e.peak.active)"
    )
    done = call(venv / "bin" / "python", "-c", program, cwd=tmp_path)
    assert done.stdout == f"True {4 << 30}\n", done.stderr


def test_another_interpreter_is_refused_but_another_name_of_its_own_is_accepted(venv, tmp_path, with_cuda):
    (tmp_path / "train.py").write_text("import sys; print(sys.prefix)\n")
    run = [venv / "bin" / "plimsoll", "run", "--quiet"]
    assert call(*run, "--python", venv / "bin" / "python3", "train.py", cwd=tmp_path).stdout == f"{venv}\n"
    refused = call(*run, "--python", sys.executable, "train.py", cwd=tmp_path)
    assert refused.returncode == 2
    assert f"Install plimsoll for {sys.executable} too, or use ./plimsoll of the source tree" in refused.stderr


# -- a CPU build of torch --------------------------------------------------------------------------------------------------


@pytest.fixture
def cpu_torch(tmp_path):
    """The files of a CPU build that are checked before torch is imported."""
    package = tmp_path / "path" / "torch"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('only looked at')\n")
    (package / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n")
    return package


@pytest.mark.parametrize("command", ["plan llama3-8b", "fit llama3-8b --maximize batch", "run train.py"])
def test_commands_that_run_torch_say_that_they_need_a_cuda_build(venv, cpu_torch, tmp_path, command):
    done = call(venv / "bin" / "plimsoll", *command.split(), cwd=tmp_path, PYTHONPATH=str(cpu_torch.parent))
    assert done.returncode == (2 if command.startswith("run") else 1)
    assert done.stderr.startswith(
        "plimsoll: this torch is a CPU build; the pretend GPU needs a CUDA build of torch 2.13.0"
    )


@pytest.mark.parametrize("command", ["models", "gpus", "plan --help", "--version"])
def test_commands_that_do_not_run_torch_work_with_any(venv, cpu_torch, tmp_path, command):
    done = call(venv / "bin" / "plimsoll", *command.split(), cwd=tmp_path, PYTHONPATH=str(cpu_torch.parent))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("expression", ["plimsoll.plan('gpt2')", "plimsoll.estimate('torch:empty', 1)"])
def test_functions_that_run_torch_say_that_they_need_a_cuda_build(venv, cpu_torch, tmp_path, expression):
    program = f"import plimsoll; {expression}"
    done = call(venv / "bin" / "python", "-c", program, cwd=tmp_path, PYTHONPATH=str(cpu_torch.parent))
    assert "InstallationError: this torch is a CPU build; the pretend GPU needs a CUDA build" in done.stderr


def test_the_module_for_cpu_builds_needs_no_library_of_cuda(venv, tmp_path, with_cuda):
    (module,) = (site_packages(venv) / "plimsoll").glob("_C_cpu*.so")
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    needed = [line for line in call("readelf", "-d", module).stdout.splitlines() if "NEEDED" in line]
    assert any("libtorch_cpu.so" in line for line in needed)
    assert not any("cuda" in line for line in needed)
    (tmp_path / "train.py").write_text("import torch, plimsoll._C_cpu\nprint(plimsoll._C_cpu.__name__)\n")
    done = call(venv / "bin" / "plimsoll", "run", "--quiet", "train.py", cwd=tmp_path)
    assert done.stdout == "plimsoll._C_cpu\n", done.stderr


def test_trackers_work_with_a_cpu_build(venv, tmp_path):
    package = site_packages(venv) / "plimsoll"
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    if python := os.environ.get("PLIMSOLL_CPU_PYTHON"):
        done = call(python, "train.py", "CPU build", cwd=tmp_path, PYTHONPATH=str(package.parent))
    elif has_cuda():  # This torch loads only with CUDA's libraries; the module does not need them.
        libraries = ":".join(map(str, sorted((package / "pretend").glob("*.so*"))))
        done = call(venv / "bin" / "python", "train.py", "as a CPU build", cwd=tmp_path, LD_PRELOAD=libraries)
    else:
        done = call(venv / "bin" / "python", "train.py", "CPU build", cwd=tmp_path)
    check_script(done, package, "plimsoll._C_cpu")


# -- missing parts of a build ----------------------------------------------------------------------------------------------------


@pytest.fixture
def configure(wheel, tmp_path):
    """`configure(python, …)`: CMake's output for a wheel for that interpreter, from sources without a set-up."""
    sources = tmp_path / "sources"
    sources.mkdir()
    for entry in ("CMakeLists.txt", "cmake", "src", "python", "scripts", "examples"):
        (sources / entry).symlink_to(HOME / entry)

    def run(python, *options, **variables):
        names = ["-DSKBUILD=2", f"-DPython3_EXECUTABLE={python}"]
        done = call("cmake", "-S", sources, "-B", tmp_path / "build", "-G", "Ninja", *names, *options, **variables)
        assert done.returncode != 0, done.stdout
        return " ".join(done.stderr.split())  # CMake breaks lines

    return run


@pytest.fixture
def bare_python(tmp_path):
    assert call(sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare").returncode == 0
    return tmp_path / "bare" / "bin" / "python"


def test_a_build_without_torch_says_how_to_give_it_one(configure, bare_python):
    said = configure(bare_python)
    assert f"{bare_python} has no torch" in said
    assert "build with `pip install --no-build-isolation .`" in said


def test_a_build_for_another_version_of_torch_is_refused(configure, bare_python, cpu_torch):
    (cpu_torch / "version.py").write_text("__version__ = '2.12.1+cpu'\ncuda: Optional[str] = None\n")
    said = configure(bare_python, PYTHONPATH=str(cpu_torch.parent))
    assert f"is for torch 2.13; {bare_python} has torch 2.12.1+cpu in {cpu_torch}" in said


def test_the_build_folder_of_another_interpreter_is_not_changed(configure, bare_python, cpu_torch, tmp_path):
    said = configure(bare_python, "-DPLIMSOLL_TORCH_LIB=auto", PYTHONPATH=str(cpu_torch.parent))
    own_python = tmp_path / "sources" / ".plimsoll" / "venv" / "bin" / "python"
    assert f"build is built for {own_python}, but this wheel is for {bare_python}: leave out `-C build-dir=…`" in said
    cache = (tmp_path / "build" / "CMakeCache.txt").read_text()
    assert f"\nPython3_EXECUTABLE:PATH={own_python}\n" in cache
    assert "\nSKBUILD:" not in cache


def test_headers_that_cannot_be_fetched_stop_the_build(configure, tmp_path, with_cuda):
    said = configure(sys.executable, PIP_NO_INDEX="1")
    assert "CUDA 13's headers are needed, and pip could not download them (above)." in said
    assert "`-C cmake.define.PLIMSOLL_CUDA_INCLUDE=/usr/local/cuda/include`" in said
