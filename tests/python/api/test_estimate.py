"""plimsoll.api.estimate: a function on the pretend GPU, in its own process."""

import doctest
import functools
import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from needs import HOME
from plimsoll.api import (
    Estimate,
    EstimateError,
    InstallationError,
    command,
    estimate,
    function_estimate,
    installation,
    payload,
)

pytestmark = pytest.mark.usefixtures("plimsoll_command")


def train(width, steps=3, batch=64):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Linear(width, width)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(batch, width, device="cuda")).sum().backward()
        optimizer.step()
    print("trained", width)


LOOP = inspect.getsource(train)


def say(*args, **kwargs):
    print("said", args, kwargs, os.getcwd(), Path(sys.path[0]).name, flush=True)
    print("aside", file=sys.stderr)


def fail():
    raise KeyError("not there") from ValueError("the cause")


def run_out():
    import torch

    torch.empty(90 << 30, dtype=torch.uint8, device="cuda")


def leave(code):
    sys.exit(code)


def die():
    os.kill(os.getpid(), 9)


def sleep(file, deaf):
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(file).write_text(str(os.getpid()))
    time.sleep(600)


def world():
    print([os.environ[name] for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MINE")])


class Trainer:
    def __init__(self, width):
        self.width = width

    def train(self):
        train(self.width, steps=1)


def python(tmp_path, text, *arguments, name="main.py", **environment):
    """Runs a user's program in another process."""
    (tmp_path / name).write_text(textwrap.dedent(text))
    paths = [str(HOME / "python"), str(HOME / "tests" / "python" / "support")]
    return subprocess.run(
        [sys.executable, *arguments] if arguments else [sys.executable, name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


# -- the answer ------------------------------------------------------------------------------------------------------------


def test_a_function_takes_the_memory_of_the_same_loop_in_a_script(plimsoll_run, script):
    name = script(LOOP + "train(512)\n")
    theirs = plimsoll_run(name).json
    ours = estimate(train, 512, capture=True)
    assert ours.to_dict()["peak"] == theirs["peak"] and ours.to_dict()["steps"] == theirs["steps"]
    assert ours.peak.active == theirs["peak"]["active_bytes"] and ours.peak.reserved == theirs["peak"]["reserved_bytes"]
    assert [step.step for step in ours.steps] == [0, 1, 2] and ours.finished_steps == 3
    assert ours.fits is True and ours.spare == ours.gpu.memory - ours.peak.device and not ours.barely
    assert ours.stdout == "trained 512\n" and "trained" not in str(ours)
    assert str(ours).startswith("Fits: ") and "\n  train, rank 0 of 1, " in str(ours)
    assert repr(ours).startswith("<Estimate train: Fits: ") and "plimsoll" in ours._repr_html_()
    assert ours.explain().splitlines()[1].startswith(f"{ours.peak.active / 2**20:.2f} MiB active at the peak: step ")
    assert sum(line.bytes for line in ours.top) <= ours.peak.active


def test_a_path_is_a_script_with_its_command_line(plimsoll_run, script, tmp_path):
    (tmp_path / "beside.py").write_text("here = 1\n")
    name = script("import sys, beside\n" + LOOP + "train(int(sys.argv[1]), steps=2)\nprint(sys.argv)\n")
    theirs = plimsoll_run(name, "256").json
    for path in (str(tmp_path / name), tmp_path / name):
        ours = estimate(path, 256, capture=True)
        assert ours.to_dict()["peak"] == theirs["peak"] and ours.to_dict()["steps"] == theirs["steps"]
    assert ours.stdout == f"trained 256\n['{tmp_path / name}', '256']\n" and ours.function == str(tmp_path / name)


def test_the_card_the_rank_and_the_settings_reach_the_function():
    seen = estimate(
        world,
        world_size=16,
        rank=11,
        gpus_per_node=4,
        gpu="A100-40GB",
        gpu_memory="20GiB",
        env={"MINE": "1"},
        capture=True,
    )
    assert seen.stdout == "['16', '11', '3', '1']\n"
    assert (seen.world_size, seen.rank) == (16, 11)
    assert (seen.gpu.name, seen.gpu.memory) == ("A100-40GB", 20 << 30)
    few = estimate(train, 256, 9, steps=2, alloc_conf="expandable_segments:True", capture=True)
    assert len(few.steps) == 2 and few.stdout == "" and few.to_dict()["stopped_after_steps"]


def test_modules_are_listed_to_the_requested_depth(plimsoll_command):
    if "--depth" not in subprocess.run([plimsoll_command, "run", "--help"], capture_output=True, text=True).stdout:
        pytest.skip("this command's run has no --depth")
    assert {module.name for module in estimate(train, 64, capture=True).modules} >= {"", "0", "1"}
    assert not {module.name for module in estimate(train, 64, depth=0, capture=True).modules} & {"0", "1"}


def test_running_out_of_memory_is_a_result_and_not_an_error(capfd):
    full = estimate(run_out)
    assert full.fits is False and full.error.type == "OutOfMemoryError"
    assert full.spare == full.oom.device_free - (90 << 30) < 0 and full.oom.function == "run_out"
    assert repr(full).startswith("<Estimate run_out: Does not fit: an allocation of 90.00 GiB failed, with 78.60 GiB ")
    assert str(full).startswith("Does not fit: an allocation of 90.00 GiB failed")
    assert full.explain().splitlines()[-1].startswith("Memory ran out at ")
    assert "Traceback" not in capfd.readouterr().err


def test_without_a_gpu_an_estimate_has_no_verdict():
    nothing = estimate(leave, 0)
    assert nothing.fits is None and nothing.spare is None and not nothing.barely
    assert str(nothing) == "No verdict: the script used no GPU; it did not import torch.\n"
    assert repr(nothing) == "<Estimate leave: No verdict: the script used no GPU; it did not import torch.>"
    assert nothing.explain() == "No verdict: the script used no GPU; it did not import torch."
    host = estimate("torch:zeros", 8)
    assert host.fits is None and str(host) == "No verdict: the script used no GPU; it put no tensor on one.\n"


def test_bytes_without_a_cause_are_reported_by_line():
    document = estimate(functools.partial(Trainer(64).train), capture=True).to_dict()
    document["peak"].pop("categories", None)
    document |= {"modules": None, "causes": None, "attribution": "Not seen."}
    unknown = Estimate(json.dumps(document), "", "f")
    assert unknown.categories == {} and unknown.modules == [] and unknown.causes == []
    lines = unknown.explain().splitlines()
    assert "  Not seen." in lines and "Largest live allocations at the peak, by line of code:" in lines


# -- sending the function -------------------------------------------------------------------------------------------------


def test_arguments_path_and_folder_are_those_of_the_caller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "first")
    said = estimate(say, 1, "two", three=[3], capture=True)
    assert said.stdout == f"said (1, 'two') {{'three': [3]}} {tmp_path} first\n" and said.stderr == "aside\n"


def test_methods_partials_and_names_are_functions_too():
    assert estimate(Trainer(64).train, capture=True).stdout == "trained 64\n"
    part = estimate(functools.partial(train, steps=1), 64, capture=True)
    assert part.stdout == "trained 64\n" and part.function == "train" and len(part.steps) == 1
    named = estimate("test_estimate:train", 64, 1, capture=True)
    assert named.stdout == "trained 64\n" and named.peak == part.peak


def test_prints_go_to_the_callers_streams(capfd):
    estimate(say)
    out, err = capfd.readouterr()
    assert "said () {}" in out and err == "aside\n"


def test_prints_go_to_streams_without_a_file_too(monkeypatch):
    import io

    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    estimate(say)
    assert out.getvalue().startswith("said () {}") and err.getvalue() == "aside\n"


MAIN = (
    LOOP
    + """
from plimsoll.api import estimate
print("main as", __name__)
if __name__ == "__main__":
    found = estimate(train, 64, steps=1)
    print(found.finished_steps, len(found.steps), found.function)
"""
)


@pytest.mark.parametrize("arguments", [(), ("-m", "main")], ids=["script", "module"])
def test_a_function_of_the_main_module_is_found_again(tmp_path, arguments):
    done = python(tmp_path, MAIN, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["main as __main__", "main as __mp_main__", "1 1 train"]


def test_a_main_module_without_a_guard_is_reported(tmp_path):
    done = python(tmp_path, MAIN.replace('if __name__ == "__main__":', "if True:"))
    assert done.returncode != 0
    assert 'put the call below `if __name__ == "__main__":`' in done.stderr and "could not be loaded" in done.stderr


def test_a_main_module_is_not_run_again_unless_it_is_needed(tmp_path):
    done = python(tmp_path, "from plimsoll.api import estimate\nprint(estimate('os:getpid'))\n")
    assert done.returncode == 0 and done.stdout.count("No verdict") == 1, done.stderr


def test_an_estimate_inside_an_estimate_has_its_own_settings(tmp_path):
    """The settings of the outer `estimate` do not reach the inner one."""
    inner = estimate("test_estimate:nested", capture=True)
    assert inner.stdout == "1 True\n", inner.stderr


def nested():
    found = estimate(train, 64, steps=1, capture=True)
    print(found.finished_steps, found.fits)


PROMPT = ("-c", "from plimsoll.api import estimate\ndef f(): print('here')\nprint(estimate(f))")
CLOSURE = """
    from plimsoll.api import estimate
    def outer(word):
        return lambda: print(word)
    if __name__ == "__main__":
        print(estimate(outer("here")))
"""


@pytest.mark.parametrize("arguments", [PROMPT, ()], ids=["prompt", "closure"])
def test_a_function_without_a_name_is_sent_by_value_with_cloudpickle(tmp_path, arguments):
    found = installation.importlib.util.find_spec("cloudpickle")
    if found is None:
        pytest.skip("cloudpickle is not installed")
    paths = os.pathsep.join([str(Path(found.origin).parents[1]), str(HOME / "python")])
    done = python(tmp_path, CLOSURE, *arguments, PYTHONPATH=paths)
    assert done.returncode == 0 and done.stdout.startswith("here\nNo verdict: "), done.stderr


@pytest.mark.parametrize("arguments", [PROMPT, ()], ids=["prompt", "closure"])
def test_a_function_without_a_name_needs_cloudpickle(tmp_path, arguments):
    (tmp_path / "cloudpickle.py").write_text("raise ImportError('hidden')\n")
    paths = os.pathsep.join([str(tmp_path), str(HOME / "python")])
    done = python(tmp_path, CLOSURE, *arguments, PYTHONPATH=paths)
    assert done.returncode == 1 and "ValueError: " in done.stderr
    assert "is not installed: pip install cloudpickle, or move the function to the top level" in done.stderr


def test_another_interpreter_has_its_own_libraries_and_the_callers_modules(tmp_path):
    """The caller's interpreter has no torch here; another test has its message."""
    own = installation.find().own_python
    plain = Path(sys.base_prefix, "bin", "python3")
    if own is None or not own.exists() or not plain.exists():
        pytest.skip("there is only one interpreter")
    (tmp_path / "mine.py").write_text("import os, torch\ndef f(word): print(word, os.path.dirname(torch.__file__))\n")
    ask = f"from plimsoll.api import estimate; print(estimate('mine:f', 'here', python={str(own)!r}))"
    environment = {**os.environ, "PYTHONPATH": str(HOME / "python")}
    done = subprocess.run(
        [plain, "-c", ask], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.startswith(f"here {own.parents[1]}"), done.stderr


# -- errors ----------------------------------------------------------------------------------------------------------------


def test_an_exception_of_the_function_is_raised_with_its_traceback(capfd):
    with pytest.raises(EstimateError, match="^fail raised KeyError:\nTraceback|ValueError: the cause") as raised:
        estimate(fail)
    text = str(raised.value)
    assert text.startswith("fail raised KeyError:\n") and text.endswith("KeyError: 'not there'")
    assert "ValueError: the cause" in text and "in fail" in text and "api/child.py" not in text
    assert raised.value.type == "KeyError" and raised.value.traceback in text + "\n"
    assert isinstance(raised.value, RuntimeError) and raised.value.estimate.error.type == "KeyError"
    assert capfd.readouterr().err == ""


def test_an_exception_of_a_script_is_raised_too(script, tmp_path):
    name = script("raise OSError('no')\n")
    with pytest.raises(EstimateError, match="raised OSError") as raised:
        estimate(tmp_path / name)
    assert raised.value.traceback.splitlines()[1].strip().startswith(f'File "{tmp_path / name}", line 1')


def test_a_function_that_the_child_cannot_import_is_reported():
    with pytest.raises(
        EstimateError, match="(?s)^math:nothing could not be loaded in the child:.*has no attribute 'nothing'"
    ):
        estimate("math:nothing")
    with pytest.raises(EstimateError, match="No module named 'no_such_module'"):
        estimate("no_such_module:f")


def test_an_exit_code_and_a_signal_are_errors():
    with pytest.raises(EstimateError, match="^leave ended with exit code 7$"):
        estimate(leave, 7)
    with pytest.raises(EstimateError, match="^leave ended with exit code 2$"):
        estimate(leave, 2)
    with pytest.raises(EstimateError, match="^die was ended by SIGKILL$"):
        estimate(die)


@pytest.mark.parametrize("deaf", [False, True])
def test_a_function_that_exceeds_the_timeout_is_stopped(tmp_path, monkeypatch, deaf):
    monkeypatch.setattr(command, "_PATIENCE_SECONDS", 2.0)
    file = tmp_path / "pid"
    with pytest.raises(TimeoutError, match="^plimsoll run took more than 5 seconds$"):
        estimate(sleep, file, deaf, timeout=5)
    if file.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def test_an_argument_that_cannot_be_sent_is_named():
    with pytest.raises(
        TypeError, match=r"^argument 1 of say, a generator, cannot be sent .* make it inside the function"
    ):
        estimate(say, 1, (i for i in range(3)))
    with pytest.raises(TypeError, match=r"^argument 'key' of say, a lock, cannot be sent"):
        estimate(say, key=threading.Lock())


def test_a_function_that_cannot_be_sent_by_value_is_reported(monkeypatch):
    class Refusing:
        @staticmethod
        def dumps(value, protocol):
            if isinstance(value, tuple) and callable(value[0]):
                raise RuntimeError("too deep")

    monkeypatch.setattr(payload, "_cloudpickle", lambda: Refusing)
    with pytest.raises(ValueError, match="<lambda> cannot be sent to the process with the pretend GPU: too deep$"):
        estimate(lambda: None)


def test_an_argument_that_is_not_a_function_is_refused():
    with pytest.raises(TypeError, match="needs a function or the path of a script, found int"):
        estimate(7)
    with pytest.raises(ValueError, match=r"'train' is neither the path of a script, .* nor a function as"):
        estimate("train")
    with pytest.raises(TypeError, match="a script takes a command line, not keywords: lr"):
        estimate("train.py", lr=1)


def test_bad_usage_of_the_command_is_a_value_error():
    with pytest.raises(ValueError, match="^--rank 8 does not exist: the ranks of --world-size 8 are 0 to 7"):
        estimate(say, world_size=8, rank=8)
    with pytest.raises(ValueError, match="H900"):
        estimate(say, gpu="H900")
    with pytest.raises(ValueError, match="/no/such/python does not exist"):
        estimate(say, python="/no/such/python")


def test_a_missing_script_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such script: .*nothing.py"):
        estimate(tmp_path / "nothing.py")


def test_a_cpu_build_of_torch_is_reported(monkeypatch):
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InstallationError, match="has no torch; the pretend GPU needs a CUDA build"):
        estimate(say)


def test_a_process_that_does_not_start_is_reported(monkeypatch):
    monkeypatch.setattr(function_estimate, "_CHILD", "json.tool")  # Finds no JSON in its input, and ends.
    with pytest.raises(RuntimeError, match="^the process with the pretend GPU did not start:"):
        estimate(say)


def test_the_docstring_examples_hold():
    assert doctest.testmod(function_estimate).failed == 0


def test_every_keyword_is_explained():
    for name in inspect.signature(estimate).parameters:
        assert name in estimate.__doc__, name
