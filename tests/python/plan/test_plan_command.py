"""`plimsoll plan`, `sweep`, `fit`, `explain`, `compare` and `models`, as a user starts them."""

import csv
import io
import json
import os
import pickle
import subprocess

import pytest
from json_schema import check
from needs import HOME
from planner import why_no_plan

REASON = why_no_plan()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
LLAMA = str(HOME / "tests" / "golden" / "models" / "llama.json")
SMALL = [LLAMA, "--seq-len", "512"]
FITS, FAILED, USAGE, DOES_NOT_FIT = 0, 1, 2, 3


@pytest.fixture
def plimsoll(plimsoll_command, tmp_path):
    def run(*arguments, code=FITS, **environment):
        env = {**os.environ, "PLIMSOLL_HOME": str(HOME), **environment}
        done = subprocess.run(
            [plimsoll_command, *map(str, arguments)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_the_verdict_is_the_first_line_and_the_exit_code(plimsoll):
    fits = plimsoll("plan", *SMALL)
    assert fits.stdout.startswith("Fits: ") and fits.stdout.count("\n") <= 20
    assert "The peak by module" not in fits.stdout
    assert "The peak by module" in plimsoll("plan", *SMALL, "--full").stdout
    small = plimsoll("plan", *SMALL, "--gpu-memory", "1050MiB", code=DOES_NOT_FIT)
    assert small.stdout.startswith("Does not fit: needs ")
    assert plimsoll("plan", *SMALL, "--quiet").stdout.count("\n") == 1
    assert "\x1b" not in fits.stdout  # only terminals get colour


def test_a_document_matches_its_schema_and_can_be_compared(plimsoll, tmp_path):
    text = plimsoll("plan", *SMALL, "--json", "-")
    assert check(json.loads(text.stdout), "plan") == []
    assert text.stderr.startswith("Fits: ")
    plimsoll("plan", *SMALL, "--json", "a.json")
    plimsoll("plan", *SMALL, "--checkpoint", "full", "--json", "b.json")
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["job"]["seq_len"] == 512 and report["job"]["gpus"] == 8
    compared = plimsoll("compare", "a.json", "b.json").stdout
    assert "checkpoint" in compared and "Activation" in compared
    plimsoll("plan", *SMALL, "--gpu-memory", "1050MiB", "--json", "c.json", code=DOES_NOT_FIT)
    assert check(json.loads((tmp_path / "c.json").read_text()), "plan") == []


def test_log_and_snapshot_are_written(plimsoll, tmp_path):
    plimsoll("plan", *SMALL, "--log", "events.log", "--snapshot", "memory.pickle")
    assert (tmp_path / "events.log").read_bytes().startswith(b"PLIMLOG\n")
    snapshot = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    assert snapshot["segments"] and snapshot["device_traces"][0]


def test_a_job_may_be_a_file(plimsoll, tmp_path):
    (tmp_path / "job.toml").write_text(f'model = "{LLAMA}"\nseq_len = 512\ncheckpoint = "full"\nbatch = 2\n')
    plimsoll("plan", "--job", "job.toml", "--json", "file.json")
    plimsoll("plan", *SMALL, "--checkpoint", "full", "--batch", "2", "--json", "flags.json")
    from_file, from_flags = (json.loads((tmp_path / name).read_text()) for name in ("file.json", "flags.json"))
    assert from_file["peak"] == from_flags["peak"] and from_file["job"] == from_flags["job"]
    plimsoll("plan", "--job", "job.toml", "--batch", "1", "--json", "flag.json")
    assert json.loads((tmp_path / "flag.json").read_text())["job"]["batch"] == 1
    (tmp_path / "bad.toml").write_text(f'model = "{LLAMA}"\nchekpoint = "full"\n')
    assert "did you mean checkpoint" in plimsoll("plan", "--job", "bad.toml", code=USAGE).stderr


def test_a_torchtitan_config_is_accepted(plimsoll, tmp_path):
    (tmp_path / "titan.toml").write_text(
        """
        [job]
        description = "Llama 3 8B"
        [model]
        name = "llama3"
        flavor = "8B"
        [optimizer]
        name = "AdamW"
        lr = 3e-4
        implementation = "foreach"
        [training]
        local_batch_size = 1
        seq_len = 8192
        steps = 1000
        [parallelism]
        data_parallel_shard_degree = 8
        [activation_checkpoint]
        mode = "selective"
        selective_ac_option = "op"
        """
    )
    plimsoll("plan", "--job", "titan.toml", "--json", "titan.json")
    plimsoll("plan", "llama3-8b", "--gpus", "8", "--checkpoint", "selective", "--json", "flags.json")
    titan, flags = (json.loads((tmp_path / name).read_text()) for name in ("titan.json", "flags.json"))
    assert titan["peak"] == flags["peak"]


def test_a_sweep_has_a_row_for_each_combination(plimsoll):
    axes = ["--batch", "1..2", "--checkpoint", "none,full"]
    rows = list(csv.DictReader(io.StringIO(plimsoll("sweep", *SMALL, *axes, "--csv").stdout)))
    assert [(row["batch"], row["checkpoint"]) for row in rows] == [
        ("1", "none"),
        ("1", "full"),
        ("2", "none"),
        ("2", "full"),
    ]
    document = json.loads(plimsoll("sweep", *SMALL, *axes, "--json").stdout)
    assert check(document, "sweep") == []
    alone = json.loads(plimsoll("plan", *SMALL, "--batch", "2", "--checkpoint", "full", "--json", "-").stdout)
    assert document["rows"][3]["active_bytes"] == alone["peak"]["active_bytes"]
    assert document["rows"][3]["reserved_bytes"] == alone["peak"]["reserved_bytes"]


def test_fit_finds_the_limit_that_plans_confirm(plimsoll):
    memory = ["--gpu-memory", "2GiB"]
    found = json.loads(plimsoll("fit", *SMALL, *memory, "--maximize", "batch", "--json", "-").stdout)
    assert check(found, "fit") == []
    limit = found["limit"]
    plimsoll("plan", *SMALL, *memory, "--batch", limit, "--quiet")
    plimsoll("plan", *SMALL, *memory, "--batch", limit + 1, "--quiet", code=DOES_NOT_FIT)
    plimsoll("fit", *SMALL, "--gpu-memory", "1050MiB", "--maximize", "batch", code=DOES_NOT_FIT)


def test_explain_runs_each_change(plimsoll):
    text = plimsoll("explain", *SMALL).stdout
    assert "cause by cause" in text and "could not be tried" not in text
    base, full = (
        json.loads(plimsoll("plan", *SMALL, *flags, "--json", "-").stdout)["peak"]["device_bytes"]
        for flags in ([], ["--checkpoint", "full"])
    )
    line = next(line for line in text.splitlines() if line.startswith("  --checkpoint full"))
    assert f"{(base - full) / 2**20:.2f} MiB" in line


def test_models_prints_configs_that_plan_accepts(plimsoll, tmp_path):
    assert "llama3-8b" in plimsoll("models").stdout
    config = plimsoll("models", "gpt2").stdout
    (tmp_path / "config.json").write_text(config)
    by_name, by_path = (
        json.loads(plimsoll("plan", model, "--gpus", "2", "--json", "-").stdout)["peak"]
        for model in ("gpt2", "config.json")
    )
    assert by_name == by_path


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["llama3-8bb"], "did you mean llama3-8b"),
        (["no/such/config.json"], "no such file"),
        (["meta-llama/Meta-Llama-3-8B"], "does not download models"),
        ([*SMALL, "--chekpoint", "full"], "did you mean --checkpoint"),
        ([*SMALL, "--checkpoint", "fulll"], "did you mean full"),
        ([*SMALL, "--optimizer", "adamww"], "did you mean adamw"),
        ([*SMALL, "--gpu", "H100-80"], "H100-80GB"),
        ([*SMALL, "--batch", "0"], "--batch"),
        ([*SMALL, "--batch", "-3"], "--batch"),
        ([*SMALL, "--batch", "4611686018427387904"], "--batch"),
        ([LLAMA, "--seq-len", "2147483647", "--batch", "2147483647"], "--batch"),
        ([*SMALL, "--gpus", "8", "--replicas", "3"], "--replicas"),
        ([*SMALL, "--gpus", "200000"], "rows"),
        ([*SMALL, "--gpus", "2147483647", "--replicas", "2147483647"], "from 1 to 1048576"),
        (["mixtral-8x7b", "--gpus", "12"], "are more than the 8 experts"),
        ([*SMALL, "--optimizer", "sgd", "--optimizer-impl", "fused"], "no fused SGD"),
        ([*SMALL, "--alloc-conf", "backend:cudaMallocAsync"], "--alloc-conf"),
        ([*SMALL, "--alloc-conf", "expandable_segment:True"], "--alloc-conf: torch refuses"),
        ([*SMALL, "--alloc-conf", "max_split_size_mb:abc"], "--alloc-conf: torch refuses"),
        ([*SMALL, "--rank", "8"], "--rank"),
        ([*SMALL, "--gpu-memory", "1KiB"], "--gpu-memory"),
        ([*SMALL, "--json", "no/such/folder/out.json"], "--json"),
        ([*SMALL, "--snapshot", "/proc/no.pickle"], "--snapshot"),
        ([*SMALL, "--units", "GB"], "KiB, MiB or GiB"),
    ],
)
def test_bad_usage_is_explained_and_leaves_no_files(plimsoll, tmp_path, arguments, words):
    done = plimsoll("plan", *arguments, code=USAGE)
    assert words in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


HOSTILE = {
    "deep": ("[" * 100000, "nested deeper than 32 levels"),
    "huge number": ('{"model_type": "llama", "vocab_size": 1' + "0" * 400 + "}", "out of range"),
    "wrong type": ('{"model_type": "llama", "vocab_size": "many"}', "field 'vocab_size' must be a whole number"),
    "NaN": ('{"model_type": "llama", "vocab_size": NaN}', "not valid JSON: line 1, column 39"),
    "heads": (
        '{"model_type": "llama", "vocab_size": 9, "hidden_size": 10, "intermediate_size": 9, "num_hidden_layers": 1, '
        '"num_attention_heads": 3}',
        "field 'num_attention_heads' must divide hidden_size",
    ),
    "unknown": ('{"model_type": "rwkv"}', "Supported: llama, mistral"),
    "quantized": ('{"model_type": "llama", "quantization_config": {"bits": 4}}', "field 'quantization_config'"),
    "empty": ("", "not valid JSON: line 1, column 1"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_configs_are_refused(plimsoll, tmp_path, kind):
    text, said = HOSTILE[kind]
    (tmp_path / "config.json").write_text(text)
    assert said in plimsoll("plan", "config.json", code=USAGE).stderr


def test_a_file_of_a_gigabyte_is_refused_as_a_config(plimsoll, tmp_path):
    with open(tmp_path / "config.json", "wb") as file:
        file.truncate(1 << 30)
    assert "larger than 4 MiB" in plimsoll("plan", "config.json", code=USAGE).stderr


def test_a_job_that_no_card_holds_is_reported_as_more(plimsoll):
    huge = plimsoll("plan", "llama3-8b", "--batch", "2000", code=DOES_NOT_FIT).stdout
    assert "needs more than" in huge.splitlines()[0]


def test_the_environment_does_not_change_a_plan(plimsoll):
    settings = {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:2",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
        "PYTORCH_ALLOC_CONF": "x:y",
    }
    settings.update(dict.fromkeys(("PLIMSOLL_GPUS", "PLIMSOLL_GPU_MEMORY", "PLIMSOLL_EVENT_LAG"), "no number"))
    plain, changed = (
        json.loads(plimsoll("plan", *SMALL, "--json", "-", **environment).stdout)["peak"]
        for environment in ({}, settings)
    )
    assert plain == changed


def test_lost_output_is_a_failure(plimsoll_command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([plimsoll_command, "plan", *SMALL], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == FAILED and "standard output" in done.stderr


def test_the_error_names_a_missing_worker(plimsoll):
    done = plimsoll("plan", *SMALL, code=FAILED, PLIMSOLL_PLANNER="/no/such/planner")
    assert "/no/such/planner" in done.stderr
