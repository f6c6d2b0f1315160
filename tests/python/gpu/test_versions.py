"""Older versions of torch, of CUDA 12, beside the newest: `./check --versions` installs them."""

import json
from pathlib import Path

import golden
import pytest
from golden_observer import check_observer

pytestmark = pytest.mark.versions

HOME = Path(__file__).resolve().parents[3]
OLDEST = "2.5.1"  # everything is tried on it
BETWEEN = "2.9.1"  # what changed since, and changed again before the newest


def run_of(plimsoll_run, version):
    """`plimsoll run --python …` with that torch, whose libraries are built the first time."""
    python = HOME / ".plimsoll" / f"venv-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"torch {version} is not installed beside: ./check --versions does that")

    def run(*arguments, unpretended=()):
        done = plimsoll_run("--python", python, *arguments, timeout=1800)
        assert done.code == 0, done.stderr
        assert done.json["torch"].startswith(version)
        assert set(done.json["unpretended"]) <= set(unpretended)
        return done

    return run


@pytest.fixture
def older_run(plimsoll_run):
    return run_of(plimsoll_run, OLDEST)


@pytest.fixture(params=[OLDEST, BETWEEN])
def each_run(plimsoll_run, request):
    return run_of(plimsoll_run, request.param)


def test_the_golden_run_of_the_older_torch_gives_the_same_bytes(older_run, tmp_path):
    recorded = golden.read(golden.FOLDER / "older_torch" / f"torch_{OLDEST}_A1_fullAC.json")
    out = tmp_path / "out.json"
    run = older_run(*golden.options(recorded["env"]), golden.TRAIN, json.dumps(recorded["config"]), out)
    assert golden.read(out)["phases"] == recorded["phases"]
    check_observer(recorded, run.json)


EXAMPLES = ("plain", "amp", "cuda_graph", "ddp", "fsdp1", "fsdp2", "tp_fsdp2")


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_on_the_older_torch(older_run, example):
    run = older_run("--world-size", "8", "--rank", "3", HOME / "examples" / f"train_{example}.py")
    assert run.json["fits"] is True
    assert run.json["top"], "what was alive at the peak is told for the older torch too"


DISTRIBUTED = [
    ("ddp", []),
    ("fsdp2", ["--checkpoint", "full"]),
    ("fsdp2", ["--hsdp", "2", "--accumulate", "2", "--no-sync"]),  # a device mesh, hence groups split from another
]


@pytest.mark.parametrize("example, options", DISTRIBUTED)
def test_distributed_examples_stop_after_a_number_of_steps_on_older_versions(each_run, example, options):
    where = ["--world-size", "16", "--rank", "5", "--steps", "2"]
    run = each_run(*where, HOME / "examples" / f"train_{example}.py", *options)
    assert (run.json["fits"], run.json["finished_steps"]) == (True, 2)
    for step in run.json["steps"]:
        assert set(step["phases"]) >= {"forward", "backward", "optimizer"}


@pytest.mark.parametrize("alloc_conf", ["expandable_segments:True", "backend:cudaMallocAsync"])
def test_allocator_settings_work_on_older_versions(each_run, alloc_conf):
    run = each_run("--alloc-conf", alloc_conf, HOME / "examples" / "train_plain.py")
    assert run.json["peak"]["device_bytes"] > run.json["gpu"]["memory_bytes"] // 1000


def test_every_library_of_cuda_12_answers(each_run):
    # Where torch has an extension for NVSHMEM, that cannot be started.
    each_run(HOME / "tests" / "python" / "programs" / "every_library.py", unpretended=["nvshmemx_get_uniqueid"])


def test_what_the_host_sent_is_known_where_torch_tells_its_kernels(each_run, script):
    text = """
    import torch
    from plimsoll.run.values.host_values import known_values
    sent = torch.ones(2, 3, dtype=torch.long).cuda()
    is_known = hasattr(torch.library, "get_kernel")
    assert (known_values.on_host(sent) is not None) == is_known
    assert known_values.where_known(lambda: bool((sent[:, 1:] == 1).all()))() == is_known
    assert torch.tensor(1.5, device="cuda").half().dtype == torch.half
    """
    each_run(script(text))
