"""plimsoll.api.plan: the command's document as an object."""

import doctest
import html.parser
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from needs import HOME
from planner import why_no_plan
from plimsoll.api import InstallationError, Plan, command, installation, model_plan, parts, plan, result

from plimsoll import amounts

REASON = why_no_plan()
needs_planner = pytest.mark.skipif(REASON is not None, reason=str(REASON))
LLAMA = HOME / "tests" / "golden" / "models" / "llama.json"
TIMES = ("seconds", "planner_step_seconds")


def without_times(document):
    return {name: value for name, value in document.items() if name not in TIMES}


def of_the_command(folder, *arguments):
    file = folder / "document.json"
    done = subprocess.run(
        [installation.find().command, "plan", "--json", file, *map(str, arguments)],
        env={**os.environ, "PLIMSOLL_HOME": str(HOME)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 3), done.stderr
    return json.loads(file.read_text()), done.stdout


def sample(only_just=False, sentence="Fits: 70 of 100 B used on a <G>, 30 B left.", **changes):
    """The smallest document of a plan."""
    peak = {
        "active_bytes": 50,
        "allocated_bytes": 50,
        "reserved_bytes": 60,
        "device_bytes": 70,
        "segments": 1,
        "step": 1,
    }
    peak |= {"phase": "backward", "module": "layers.1", "stage": "backward", "categories": {"Temp": 30, "<Act>": 20}}
    peak |= {"device_parts": {"segments": 60, "context": 10, "nccl": 0, "handles": 0}}
    phase = dict.fromkeys(("active_end_bytes", "reserved_end_bytes"), 1)
    tops = dict.fromkeys(("active_peak_bytes", "allocated_peak_bytes", "reserved_peak_bytes"), 50)
    module = {"name": "", "type": "<Model>", "fsdp_unit": True, "parameters": 9, "highest_bytes": 50, "total_bytes": 50}
    owners = [{"name": "layers.1", "bytes": 30}]
    cause = {"bytes": 30, "category": "Temp", "why": "why", "sentence": "30 B Temp: because.", "owners": owners}
    gpu = {"name": "<G>", "device_name": "G", "memory_bytes": 100, "compute_capability": "9.0", "multiprocessors": 1}
    document = {
        "version": 2,
        "fits": True,
        "verdict": {"outcome": "fits", "only_just": only_just, "spare_bytes": 30, "sentence": sentence},
        "gpu": gpu,
        "model": {"name": "m", "parameters": 9},
        "job": {"gpus": 1},
        "peak": peak,
        "oom": None,
        "before_steps": None,
        "steps": [{"step": 1, **tops, "phases": {"backward": {**tops, **phase}}}],
        "modules": [{**module, "at_peak": {"Temp": 30}}],
        "causes": [cause],
        "host_bytes": 0,
        "host_pinned_bytes": 0,
        "alloc_retries": 0,
        "notes": ["a <note>"],
        **changes,
    }
    return Plan(json.dumps(document), "the text\n", "<m>")


# -- the command's document --------------------------------------------------------------------------------------------------


@needs_planner
@pytest.mark.parametrize(
    "keywords, flags",
    [
        ({"gpus": 8, "seq_len": 512}, ["--gpus", 8, "--seq-len", 512]),
        (
            {"gpus": 8, "replicas": 2, "rank": 3, "batch": 2, "seq_len": 256, "steps": 3, "grad_accum": 2, "depth": 3}
            | {"accum_no_sync": True, "param_dtype": "fp16", "reduce_dtype": "bf16", "master_dtype": "bf16"}
            | {"reshard_after_forward": False, "keep_last_block": False, "wrap": "blocks:2", "checkpoint": "full"}
            | {"optimizer": "adam", "optimizer_impl": "fused", "clip_grad_norm": "none", "loss_fp32": False}
            | {"keep_logits": True, "norm": "fused", "alloc_conf": "expandable_segments:True", "gpu": "A100-40GB"}
            | {"gpu_memory": 20 << 30, "offload": "none"},
            [
                "--gpus=8",
                "--replicas=2",
                "--rank=3",
                "--batch=2",
                "--seq-len=256",
                "--steps=3",
                "--grad-accum=2",
                "--depth=3",
            ]
            + ["--accum-no-sync=true", "--param-dtype=fp16", "--reduce-dtype=bf16", "--master-dtype=bf16"]
            + ["--reshard-after-forward=never", "--keep-last-block=false", "--wrap=blocks:2", "--checkpoint=full"]
            + ["--optimizer=adam", "--optimizer-impl=fused", "--clip-grad-norm=none", "--loss-fp32=false"]
            + ["--keep-logits=true", "--norm=fused", "--alloc-conf=expandable_segments:True", "--gpu=A100-40GB"]
            + ["--gpu-memory=20GiB", "--offload=none"],
        ),
        ({"gpus": 8, "seq_len": 512, "gpu_memory": "1050MiB"}, ["--gpus=8", "--seq-len=512", "--gpu-memory=1050MiB"]),
        ({"gpus": 1, "seq_len": 256}, ["--gpus=1", "--seq-len=256"]),
    ],
    ids=["few", "every keyword", "does not fit", "one GPU"],
)
def test_keywords_become_flags_and_the_document_is_the_commands(tmp_path, keywords, flags):
    ours = plan(str(LLAMA), **keywords)
    theirs, text = of_the_command(tmp_path, LLAMA, *flags)
    assert without_times(ours.to_dict()) == without_times(theirs)
    assert json.loads(ours.to_json()) == ours.to_dict() and ours.to_json().endswith("}\n")
    assert str(ours).splitlines()[0] == text.splitlines()[0]
    assert ours.fits is theirs["fits"] and ours.peak.device == theirs["peak"]["device_bytes"]
    assert ours.spare == theirs["gpu"]["memory_bytes"] - theirs["peak"]["device_bytes"]
    assert (ours.spare < 0) is (not ours.fits) and (ours.oom is None) is ours.fits
    assert ours.categories == theirs["peak"]["categories"] and sum(ours.categories.values()) == ours.peak.active
    assert [module.name for module in ours.modules] == [module["name"] for module in theirs["modules"]]
    assert sum(cause.bytes for cause in ours.causes) == ours.peak.active
    assert ours.steps[-1].phases["forward"].active == theirs["steps"][-1]["phases"]["forward"]["active_peak_bytes"]
    assert ours.job == theirs["job"] and ours.notes == theirs["notes"]


@needs_planner
def test_a_model_is_a_name_a_path_a_dict_or_a_configuration(tmp_path, monkeypatch):
    config = json.loads(LLAMA.read_text())
    expected = plan(str(LLAMA), gpus=8, seq_len=512)
    given = [LLAMA, config, types.SimpleNamespace(to_dict=lambda: config)]
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text(LLAMA.read_text())
    for model in [*given, Path("mine.json")]:
        found = plan(model, gpus=8, seq_len=512)
        assert found.peak == expected.peak and found.parameters == expected.parameters
    assert plan(config, gpus=8, seq_len=512).model == "llama"
    assert plan({**config, "_name_or_path": "my/llama"}, gpus=8, seq_len=512).model == "my/llama"


@needs_planner
def test_a_configuration_of_transformers_is_a_model(plimsoll_run, script):
    """In `plimsoll run`, because transformers imports torch. So this also tests a plan within a run."""
    if installation.importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    name = script(
        f"""
        from transformers import LlamaConfig
        from plimsoll.api import plan
        config = LlamaConfig.from_json_file({str(LLAMA)!r})
        assert plan(config, gpus=8, seq_len=512).peak == plan({str(LLAMA)!r}, gpus=8, seq_len=512).peak
        """
    )
    run = plimsoll_run(name)
    assert run.code == 0, run.stderr


@needs_planner
def test_a_job_file_gives_the_fields_that_no_keyword_sets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(f'model = "{LLAMA}"\nseq_len = 512\ngpus = 4\nbatch = 2\n')
    whole = plan(job="job.toml")
    assert (whole.job["gpus"], whole.job["batch"]) == (4, 2) and whole.model == str(LLAMA)
    assert plan(job=Path("job.toml"), batch=1, gpus=2).peak == plan(str(LLAMA), gpus=2, seq_len=512).peak


@needs_planner
def test_a_relative_profile_path_starts_at_the_callers_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profile = json.loads((HOME / "src/plimsoll/pretend/profiles/H100-80GB.json").read_text())
    Path("mine.json").write_text(json.dumps({**profile, "name": "mine"}))
    assert plan(json.loads(LLAMA.read_text()), gpu="mine.json", seq_len=256).gpu.name == "mine"


@needs_planner
def test_bad_usage_is_a_value_error_with_the_commands_message():
    with pytest.raises(ValueError, match=r"^--batch expects a whole number from 1"):
        plan("llama3-8b", batch=0)
    with pytest.raises(ValueError, match="llama3-9b"):
        plan("llama3-9b")
    with pytest.raises(ValueError, match="--accum-no-sync needs --grad-accum"):
        plan("gpt2", accum_no_sync=True)


@needs_planner
def test_a_failed_command_is_a_runtime_error_with_its_message(monkeypatch):
    monkeypatch.setenv("PLIMSOLL_PLANNER", "/no/such/planner")
    with pytest.raises(RuntimeError, match=r"(?s)failed with exit code 1:.*/no/such/planner"):
        plan("gpt2")


def test_the_error_of_a_killed_command_names_its_signal():
    with pytest.raises(RuntimeError, match="^the plimsoll command was ended by SIGKILL without a message$"):
        command.CommandOutput(-9, None, "", "").required_document()


@needs_planner
def test_a_plan_that_exceeds_the_timeout_is_stopped():
    with pytest.raises(TimeoutError, match="^plimsoll plan took more than 0.01 seconds$"):
        plan("llama3-8b", timeout=0.01)


def test_a_plan_needs_exactly_one_model():
    with pytest.raises(ValueError, match="needs a model, or a job file"):
        plan()


def test_an_unknown_keyword_is_refused():
    with pytest.raises(TypeError, match="^plan\\(\\) has no keyword 'batch_size': `plimsoll plan --help` lists them$"):
        plan("llama3-8b", batch_size=4)


@pytest.mark.parametrize("model", [7, ["llama3-8b"], types.SimpleNamespace])
def test_a_model_of_the_wrong_type_is_refused(model, built):
    with pytest.raises(TypeError, match="model must be a name of `plimsoll models`.*found "):
        plan(model)


def test_a_configuration_that_is_not_json_is_refused(built):
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        plan({"model_type": object()})


# -- the installation ------------------------------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A source tree with a command that prints nothing."""
    program = tmp_path / "build" / "release" / "bin" / "plimsoll"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    return program


def test_the_source_tree_is_found_from_the_package(monkeypatch):
    monkeypatch.delenv("PLIMSOLL_HOME", raising=False)
    if not (HOME / "build/release/bin/plimsoll").exists():
        pytest.skip("the plimsoll command is not built")
    found = installation.find()
    assert found.home == HOME and found.command == HOME / "build/release/bin/plimsoll"
    assert found.variables == {"PLIMSOLL_HOME": str(HOME)}
    assert found.own_python == HOME / ".plimsoll/venv/bin/python"


def test_the_environment_variable_overrides_the_source_tree(built, tmp_path):
    found = installation.find()
    assert found.home == tmp_path and found.command == built
    assert not found.python_is_own()


def test_a_wheel_has_its_command_beside_the_package(built, tmp_path, monkeypatch):
    monkeypatch.delenv("PLIMSOLL_HOME")
    package = tmp_path / "site-packages" / "plimsoll"
    monkeypatch.setattr(installation, "PACKAGE", package)
    with pytest.raises(
        InstallationError, match=r"no plimsoll command at .*plimsoll/bin/plimsoll: run `pip install \.`"
    ):
        installation.find()
    (package / "bin").mkdir(parents=True)
    built.rename(package / "bin" / "plimsoll")
    found = installation.find()
    assert found.home is None and found.command == package / "bin" / "plimsoll"
    assert found.variables == {"PLIMSOLL_PYTHON": sys.executable}
    assert found.own_python is None and found.python_is_own()


def test_a_source_tree_without_a_built_command_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    message = rf"PLIMSOLL_HOME is {tmp_path}, but there is no plimsoll command at .*: run ./plimsoll in .*, or unset"
    with pytest.raises(InstallationError, match=message):
        plan("gpt2")
    monkeypatch.delenv("PLIMSOLL_HOME")
    (tmp_path / "CMakeLists.txt").touch()
    monkeypatch.setattr(installation, "PACKAGE", tmp_path / "python" / "plimsoll")
    with pytest.raises(
        InstallationError, match=rf"^There is no plimsoll command at .*: run ./plimsoll in {tmp_path} once"
    ):
        plan("gpt2")


@pytest.mark.parametrize("system, machine", [("Darwin", "arm64"), ("Linux", "aarch64")])
def test_an_unsupported_platform_is_reported(monkeypatch, system, machine):
    monkeypatch.setattr(installation.platform, "system", lambda: system)
    monkeypatch.setattr(installation.platform, "machine", lambda: machine)
    with pytest.raises(InstallationError, match=f"^plimsoll runs on Linux on x86-64; this is {system} on {machine}"):
        plan("gpt2")


def test_a_missing_torch_or_a_cpu_build_is_reported(built, tmp_path, monkeypatch):
    found = installation.find()
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InstallationError, match=r"has no torch; .* no GPU is needed: pip install torch===2\.13\.0"):
        installation.check_torch(found)
    origin = tmp_path / "torch" / "__init__.py"
    spec = types.SimpleNamespace(origin=str(origin))
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(
        InstallationError, match=r"^this torch is a CPU build; the pretend GPU needs a CUDA build of torch"
    ):
        installation.check_torch(found)
    (tmp_path / ".plimsoll/venv/bin").mkdir(parents=True)
    (tmp_path / ".plimsoll/venv/bin/python").touch()
    with pytest.raises(InstallationError, match=r"or use the interpreter that has one: .*/venv/bin/python$"):
        installation.check_torch(found)
    (origin.parent / "lib").mkdir(parents=True)
    (origin.parent / "lib" / "libtorch_cuda.so").touch()
    installation.check_torch(found)


def test_the_environment_of_a_run_does_not_reach_an_inner_command():
    environment = {
        "PLIMSOLL_PRETEND_DIR": "/p/pretend",
        "PLIMSOLL_RUN": "{}",
        "LD_PRELOAD": "/p/pretend/libcuda.so.1:/mine.so",
        "PYTHONPATH": "/x/plimsoll/run/process/activation",
        "HOME": "/h",
    }
    assert command._outside_of_a_run(environment) == {"LD_PRELOAD": "/mine.so", "HOME": "/h"}


def test_planning_needs_no_torch():
    code = "import sys, plimsoll.api; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(HOME / "python")}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=60).returncode == 0


# -- the object ------------------------------------------------------------------------------------------------------------


def test_a_plan_has_the_verdict_of_its_document():
    fits = sample()
    assert repr(fits) == "<Plan <m>: Fits: 70 of 100 B used on a <G>, 30 B left.>" and str(fits) == "the text\n"
    assert fits.explain().splitlines() == [
        "Fits: 70 of 100 B used on a <G>, 30 B left.",
        "50 B active at the peak: step 1, backward, in layers.1.",
        "  30 B Temp: because.",
        "a <note>",
    ]
    assert fits.spare == 30 and fits.judgement.outcome == "fits"
    assert not fits.barely and sample(only_just=True).barely
    assert fits.causes[0].owners == {"layers.1": 30} and fits.modules[0].at_peak == {"Temp": 30}
    assert repr(sample(sentence="Does not fit.")) == "<Plan <m>: Does not fit.>"
    assert not hasattr(Plan, "__bool__")


def test_each_caller_gets_its_own_copy_of_the_document():
    fits = sample()
    fits.to_dict()["peak"]["active_bytes"] = 0
    fits.categories.clear()
    assert fits.to_dict()["peak"]["active_bytes"] == 50 and fits.categories == {"Temp": 30, "<Act>": 20}


def test_missing_values_are_reported_as_unknown():
    peak = {**sample().to_dict()["peak"], "categories": None}
    unknown = sample(peak=peak, modules=None, causes=None, attribution="The model was not seen.")
    assert unknown.categories == {} and unknown.modules == [] and unknown.causes == []
    assert "  The model was not seen." in unknown.explain().splitlines()
    assert "The model was not seen." in unknown._repr_html_()
    assert "  Temp: 30 B." in sample(causes=None).explain().splitlines()
    assert "  The causes are not known." in sample(causes=None, peak=peak).explain()


class Checked(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], set(), []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.append(text)


def test_a_notebook_gets_escaped_tables_without_scripts():
    checked = Checked()
    checked.feed(sample()._repr_html_())
    assert checked.open == [] and checked.tags <= {"div", "p", "b", "table", "tr", "th", "td", "span"}
    for text in ("<m>", "<Act>", "a <note>", "30 B", "60.0 %", "(the model) *"):
        assert text in checked.text, text
    many = sample(steps=sample().to_dict()["steps"] * 25)
    assert "and 5 more steps" in many._repr_html_()


@needs_planner
@pytest.mark.parametrize("module", [amounts, parts, result, model_plan], ids=lambda module: module.__name__)
def test_the_docstring_examples_hold(module):
    found = doctest.testmod(module)
    assert found.failed == 0


def test_every_keyword_is_explained():
    import inspect

    for name in inspect.signature(plan).parameters:
        assert f"    {name}: " in plan.__doc__, name
