"""Every shipped example, at several world sizes and ranks."""

import importlib.util
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Compilation needs Triton; transformers is the user's to install.
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


_runs = {}  # a run is the same each time: several tests look at one


@pytest.fixture
def example(plimsoll_run):
    """Runs an example as one rank; returns the run, having checked that it ended well and fits."""

    def run(name, *args, world=1, rank=0, gpu="H100-80GB"):
        key = (name, args, world, rank, gpu)
        if key not in _runs:
            _runs[key] = run_anew(name, *args, world=world, rank=rank, gpu=gpu)
        return _runs[key]

    def run_anew(name, *args, world, rank, gpu):
        where = ["--gpu", gpu, "--world-size", str(world), "--rank", str(rank)]
        result = plimsoll_run(*where, str(EXAMPLES / name), *map(str, args))
        assert result.code == 0, result.stderr
        assert result.json["fits"] is True
        assert (result.json["world_size"], result.json["rank"]) == (world, rank)
        return result

    return run


def peaks(run):
    return {book: run.json["peak"][f"{book}_bytes"] for book in ("active", "allocated", "reserved")}


@pytest.mark.parametrize("name", ["train_plain.py", "train_amp.py", "train_cuda_graph.py"])
def test_single_gpu_examples(example, name):
    assert peaks(example(name))["active"] > 0


def test_the_plain_loops_peak_has_a_formula(example):
    width, layers, batch = 1024, 4, 64
    run = example("train_plain.py", "--width", width, "--layers", layers, "--batch", batch)
    parameters = 4 * (layers * (width * width + width) + width + 1)
    # AdamW in its foreach form: parameter, gradient, two moments; at its peak a temporary as large as the parameters.
    assert peaks(run)["active"] >= 5 * parameters


@pytest.mark.parametrize("world, rank", [(1, 0), (8, 0), (64, 63)])
@pytest.mark.parametrize("name", ["train_ddp.py", "train_fsdp2.py", "train_fsdp1.py", "train_llama.py"])
def test_distributed_examples(example, name, world, rank):
    example(name, world=world, rank=rank)


@pytest.mark.parametrize("name", ["train_ddp.py", "train_fsdp2.py", "train_fsdp1.py", "train_tp_fsdp2.py"])
def test_ranks_that_hold_as_much_peak_alike(example, name):
    assert peaks(example(name, world=8, rank=0)) == peaks(example(name, world=8, rank=3))


def test_ddp_takes_the_same_at_any_world_size(example):
    assert peaks(example("train_ddp.py", world=8)) == peaks(example("train_ddp.py", world=64, rank=63))


@pytest.mark.parametrize("options", [["--tp", 2], ["--tp", 4]])
@pytest.mark.parametrize("world, rank", [(8, 0), (64, 5)])
def test_tensor_parallel_with_fsdp2(example, options, world, rank):
    example("train_tp_fsdp2.py", *options, world=world, rank=rank)


def parameter_bytes(run):
    return int(re.search(r"(\d+) bytes of parameters", run.stdout).group(1))


def test_sharded_parameters_halve_when_the_ranks_double(example):
    at_8, at_16 = (parameter_bytes(example("train_fsdp2.py", world=world)) for world in (8, 16))
    assert at_8 == 2 * at_16
    assert parameter_bytes(example("train_fsdp2.py")) == 8 * at_8


def test_replicas_hold_the_shards_of_a_smaller_world(example):
    hybrid = example("train_fsdp2.py", "--hsdp", 2, world=16, rank=5)
    assert parameter_bytes(hybrid) == parameter_bytes(example("train_fsdp2.py", world=8, rank=5))


def test_checkpointing_lowers_the_peak_of_fsdp2(example):
    plain = example("train_fsdp2.py", world=8, rank=3)
    assert peaks(example("train_fsdp2.py", "--checkpoint", "full", world=8, rank=3))["active"] < peaks(plain)["active"]


def test_accumulating_without_sync_costs_unsharded_gradients(example):
    synced = example("train_fsdp2.py", "--accumulate", 3, world=8)
    unsynced = example("train_fsdp2.py", "--accumulate", 3, "--no-sync", world=8)
    assert peaks(unsynced)["active"] > peaks(synced)["active"]


# Golden runs of the same configurations on torch 2.13 (the first also measured on H100s: 82.4 GiB reserved).
GOLDEN = {
    "llama3-8b": (["--batch", 2, "--seq-len", 8192, "--ac", "op"], 73764961280, 88139104256),
    "llama2-7b": (["--batch", 8, "--seq-len", 2048, "--ac", "full", "--keep-logits"], 24378571776, 31356616704),
}


@pytest.mark.parametrize("model, rank", [("llama3-8b", 0), ("llama2-7b", 3)])
def test_llama_peaks_as_the_golden_run_does(example, model, rank):
    options, active, reserved = GOLDEN[model]
    run = example("train_llama.py", model, *options, world=8, rank=rank, gpu="H200-141GB")
    if not run.json["torch"].startswith("2.13."):
        pytest.skip("the golden run is of torch 2.13")
    assert peaks(run) == {"active": active, "allocated": active, "reserved": reserved}


@needs_triton
def test_compiled_model(example):
    example("train_compile.py")


@needs_triton
@pytest.mark.parametrize("options", [[], ["--checkpoint", "full"]])
def test_compiled_blocks_under_fsdp2(example, options):
    example("train_compile_fsdp2.py", *options, world=8, rank=3)


@needs_transformers
@pytest.mark.parametrize("model", ["llama", "gpt2", "qwen2"])
def test_transformers_models(example, model):
    example("train_hf.py", model)


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="transformers is installed")
def test_without_transformers_the_example_says_what_to_install(plimsoll_run):
    result = plimsoll_run(str(EXAMPLES / "train_hf.py"))
    assert result.code == 1
    assert "pip install transformers" in result.stderr + result.stdout
