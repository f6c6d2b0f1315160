"""Older versions of torch, with CUDA 12, beside the newest: `./check --versions` installs them."""

import json

import golden
import pytest
from golden_observer import check_observer
from needs import HOME

pytestmark = pytest.mark.versions

OLDEST = "2.5.1"  # all tests of this file run on it
BETWEEN = "2.9.1"  # between the oldest and the newest: for code that changed twice


def run_of(plimsoll_run, version):
    """`plimsoll run --python …` with that torch. The first run builds libraries for it."""
    python = HOME / ".plimsoll" / f"venv-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"torch {version} is not installed: ./check --versions installs it")

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
    assert run.json["top"], "the live allocations at the peak are reported for the older torch too"


DISTRIBUTED = [
    ("ddp", []),
    ("fsdp2", ["--checkpoint", "full"]),
    ("fsdp2", ["--hsdp", "2", "--accumulate", "2", "--no-sync"]),  # a device mesh, so groups split from another group
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
    # torch's extension for NVSHMEM cannot be initialised.
    each_run(HOME / "tests" / "python" / "programs" / "every_library.py", unpretended=["nvshmemx_get_uniqueid"])


def test_host_values_are_known_if_torch_reports_its_kernels(each_run, script):
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
