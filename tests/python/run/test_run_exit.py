"""A script ends as it would without Plimsoll, and the report is written at each kind of end."""

import os
import subprocess
import sys

import needs
import pytest

STEP = """
    import os, sys, torch
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def step():
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
    step()
"""


def test_a_script_sees_its_own_name_path_and_arguments(plimsoll_run, script, tmp_path):
    (tmp_path / "beside.py").write_text("value = 7\n")
    name = script(
        """
        import sys, os, beside
        assert __name__ == "__main__" and sys.modules["__main__"].__dict__ is globals()
        assert __spec__ is None and __file__ == os.path.join(os.getcwd(), "train.py")
        assert sys.path[0] == os.getcwd()
        assert not any(os.path.isdir(os.path.join(part, "plimsoll", "run")) for part in sys.path)
        print(sys.argv, beside.value)
        """
    )
    run = plimsoll_run(name, "--lr", "0.1")
    assert run.code == 0, run.stderr
    assert "['train.py', '--lr', '0.1'] 7" in run.stdout


@pytest.mark.parametrize("ranks", [1, 8])
def test_a_script_that_finds_torch_before_importing_it_is_watched(plimsoll_run, script, ranks):
    name = script(
        """
    import importlib.util
    for _ in range(2): spec = importlib.util.find_spec("torch")
    assert spec.origin and spec.loader.get_filename("torch") == spec.origin
    import torch.distributed as dist
    dist.init_process_group("nccl")
        """
        + STEP
        + "    dist.destroy_process_group()\n"
    )
    run = plimsoll_run("--world-size", ranks, name, timeout=60)
    assert run.code == 0, run.stderr
    assert len(run.json["steps"]) == 1 and run.json["top"]


def test_an_observer_that_fails_does_not_end_the_script(plimsoll_run, script):
    name = script(
        STEP
        + """
    os.environ["RANK"] = os.environ["WORLD_SIZE"] = ""  # read once, before
    def fail(*_): raise KeyError(os.urandom(4))
    own = {name: module for name, module in sys.modules.items() if name.startswith("plimsoll.run.")}
    own["plimsoll.run.observe.peaks"].Peaks.cut = fail
    own["plimsoll.run.contents.contents"].Contents.at_border = fail
    own["plimsoll.run.observe.session"].Session._peak_record = fail
    own["plimsoll.run.observe.hooks"].user_line = fail
    for _ in range(20): step()
    print("ended by itself")
    """
    )
    run = plimsoll_run(name)
    assert run.code == 0 and "ended by itself" in run.stdout, run.stderr
    assert 4 <= len(run.json["defects"]) <= 10
    assert run.json["rank"] == 0


def test_a_module_runs_as_main(plimsoll_run, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "job.py").write_text("import sys\nprint(__name__, __spec__.name, sys.argv[1:])\n")
    run = plimsoll_run("-m", "package.job", "a")
    assert run.code == 0, run.stderr
    assert "__main__ package.job ['a']" in run.stdout


def test_a_missing_module_is_bad_usage(plimsoll_run, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("print('package is imported')\n")
    run = plimsoll_run("--snapshot", "memory.pickle", "-m", "package.no_such_job")
    assert run.code == 2
    assert run.stderr.strip() == "plimsoll: -m package.no_such_job cannot be run: No module named package.no_such_job"
    assert run.stdout == "package is imported\n"  # as Python does, and once
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["package"]


def test_sys_exit_keeps_its_code_and_the_step_is_reported(plimsoll_run, script):
    run = plimsoll_run(script(STEP + "    sys.exit(7)\n"))
    assert run.code == 7
    assert run.json["exit_code"] == 7
    assert len(run.json["steps"]) == 1


def test_an_exception_prints_the_traceback_that_python_prints(plimsoll_run, script, tmp_path):
    name = script("def fail():\n    raise ValueError('no')\n\nfail()\n")
    plain = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True)
    run = plimsoll_run("--quiet", name)
    assert run.code == plain.returncode == 1
    assert run.stderr.strip() == plain.stderr.strip()
    assert run.json["error"] == {"type": "ValueError", "message": "no"}


def test_a_syntax_error_is_printed_as_python_prints_it(plimsoll_run, script, tmp_path):
    name = script("x = (\n")
    plain = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True)
    run = plimsoll_run("--quiet", name)
    assert run.code == 1
    assert run.stderr.strip() == plain.stderr.strip()


def test_os_exit_leaves_the_last_step(plimsoll_run, script):
    run = plimsoll_run(script(STEP + "    os._exit(5)\n"))
    assert run.code == 5
    assert len(run.json["steps"]) == 1
    assert run.json["peak"]["active_bytes"] > 0


@pytest.mark.parametrize("before", ["", "    import torch._dynamo.eval_frame\n" + STEP], ids=["", "with a compiler"])
def test_an_interrupt_ends_the_script_as_without_plimsoll(plimsoll_run, script, tmp_path, before):
    """That is by SIGINT, unless code that torch's compiler runs at the interpreter's end resets it."""
    name = script(before + "    raise KeyboardInterrupt\n")
    plain = subprocess.run(
        [sys.executable, name],
        cwd=tmp_path,
        env={**os.environ, **needs.pretend_gpu()},
        capture_output=True,
        timeout=600,
    )
    run = plimsoll_run(name)
    assert run.code == (plain.returncode if plain.returncode >= 0 else 128 - plain.returncode)
    assert before or run.code == 130
    assert "KeyboardInterrupt" in run.stderr


def test_the_scripts_own_excepthook_is_called(plimsoll_run, script):
    run = plimsoll_run(
        script("import sys\nsys.excepthook = lambda kind, error, trace: print('mine', kind.__name__)\nraise OSError\n")
    )
    assert run.code == 1
    assert "mine OSError" in run.stdout


@pytest.mark.parametrize("steps", [1, 2])
def test_steps_ends_the_run_cleanly(plimsoll_run, script, steps):
    name = script(
        STEP
        + """
    import atexit
    atexit.register(lambda: print("atexit ran"))
    try:
        for _ in range(10):
            step()
    finally:
        print("finally ran")
    """
    )
    run = plimsoll_run("--steps", str(steps), name)
    assert run.code == 0, run.stderr
    assert len(run.json["steps"]) == steps
    assert "finally ran" in run.stdout and "atexit ran" in run.stdout


def test_a_script_without_torch_runs(plimsoll_run, script):
    run = plimsoll_run(script("print('hello')\n"))
    assert run.code == 0, run.stderr
    assert "hello" in run.stdout
    assert run.json["steps"] == []


def test_threads_that_outlive_the_script_are_watched(plimsoll_run, script):
    run = plimsoll_run(
        script(
            STEP
            + """
    import threading, time
    def later():
        time.sleep(0.2)
        step(); step()
    threading.Thread(target=later).start()
    """
        )
    )
    assert run.code == 0, run.stderr
    assert len(run.json["steps"]) == 3


def test_sigterm_ends_the_script_after_its_report(plimsoll_run, script):
    run = plimsoll_run(script(STEP + "    import signal; os.kill(os.getpid(), signal.SIGTERM)\n"))
    assert run.code == 143
    assert run.json["complete"] and run.json["signal"] == 15
    assert len(run.json["steps"]) == 1
    assert run.json["verdict"]["sentence"].startswith("Fits as far as it ran: ")
    assert run.json["verdict"]["sentence"].endswith(" The script was stopped (SIGTERM).")


def test_a_scripts_own_handler_of_sigterm_is_called(plimsoll_run, script):
    run = plimsoll_run(
        script(
            "import os, signal\n"
            "signal.signal(signal.SIGTERM, lambda *_: print('mine'))\n"
            "os.kill(os.getpid(), signal.SIGTERM)\n"
        )
    )
    assert run.code == 0
    assert "mine" in run.stdout


def test_the_name_of_a_script_may_be_no_utf8(plimsoll_run, script, tmp_path):
    os.rename(tmp_path / script(STEP), os.fsencode(tmp_path) + b"/s\xff.py")
    run = plimsoll_run("s\udcff.py")
    assert run.code == 0, run.stderr
    assert run.json["script"] == "s?.py"
    assert len(run.json["steps"]) == 1
