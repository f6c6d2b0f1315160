"""Each shipped example at several world sizes and ranks: bytes equal a formula, or the recording tests/golden/examples.json."""

import importlib.util
import re

import example_bytes
import needs
import pytest

EXAMPLES = needs.HOME / "examples"
pytestmark = [pytest.mark.recorded, pytest.mark.warm]

# Compilation needs Triton; transformers is optional.
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)

COMPILED_BEFORE = set()  # Independent of the world size, because the code is the same.


@pytest.fixture
def example(plimsoll_run):
    """Runs an example as one rank; checks that it fits, that it took all steps, and the attribution of its peak. Returns
    the run."""

    def run(name, *args, world=1, rank=0, steps=3):
        where = ["--gpu", "H100-80GB", "--world-size", str(world), "--rank", str(rank)]
        # Each worker process of the compiler would import torch for a few small kernels.
        env = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
        command = [*where, str(EXAMPLES / name), *map(str, args)]
        if "compile" in name and "--eager" not in args and (name, args) not in COMPILED_BEFORE:
            plimsoll_run(
                *command, env=env
            )  # With an empty cache the compiler benchmarks kernels on the device, and that is the peak.
            COMPILED_BEFORE.add((name, args))
        result = plimsoll_run(*command, env=env)
        assert result.code == 0, result.stderr
        assert result.json["fits"] is True
        assert (result.json["world_size"], result.json["rank"]) == (world, rank)
        assert (result.json["finished_steps"], len(result.json["steps"])) == (steps, steps)
        assert result.json["unpretended"] == []
        check_contents(name, args, world, rank, result)
        return result

    return run


def check_recorded(run, name):
    assert run.json["torch"].startswith("2.13."), "the recordings are of torch 2.13"
    example_bytes.check(name, example_bytes.bytes_of(run.json))


def at_rest(run):
    """Active bytes after each optimizer step."""
    return [step["phases"]["optimizer"]["active_end_bytes"] for step in run.json["steps"]]


def check_contents(name, args, world, rank, run):
    """Each byte of the peak has a category and a cause; all parameters are counted, and the state that the optimizer has for them."""
    peak = run.json["peak"]
    found = peak["categories"]
    assert run.json["attribution"] is None
    assert run.json["defects"] == []
    assert sum(found.values()) == peak["active_bytes"] == sum(cause["bytes"] for cause in run.json["causes"])
    if name == "train_fsdp1.py":
        assert found["Parameter"] >= 4 * (SPLIT + WHOLE) // world and 0 < found["OptState"] < found["Parameter"] * 2
        return
    parameters = found["Sharded Param" if "Sharded Param" in found else "Parameter"]
    if name == "train_fsdp2.py":
        ranks = world // 2 if "--hsdp" in args else world
        assert parameters == sum(
            rounded(padded) for group in GROUPS for padded, _ in shards(group, ranks, rank % ranks)
        )
        assert found["OptState"] == 2 * sum(
            rounded(own) for group in GROUPS for _, own in shards(group, ranks, rank % ranks)
        )
    elif name == "train_compile_fsdp2.py" and peak["step"] == 0:
        # Cycles left by compilation live until Python's collector runs; they may exceed the state of one rank of many.
        assert "OptState" not in found
    elif name in ("train_llama.py", "train_compile_fsdp2.py"):  # An empty shard has memory but no state.
        assert 0 < found["OptState"] <= 2 * parameters
    else:
        assert parameters == parameters_of(name, args, world) or parameters_of(name, args, world) is None
        # Step counts: captured and fused optimizers keep them on the GPU, one for each parameter.
        counts = rounded(1) * {"train_cuda_graph.py": 8, "train_compile.py": 12}.get(name, 0)
        assert found["OptState"] == (1 if name == "train_amp.py" else 2) * parameters + counts


def parameters_of(name, args, world):
    """The bytes that they take on one rank; None if the example decides."""
    layers = 4 * (rounded(1024 * 1024) + rounded(1024))
    if name in ("train_plain.py", "train_cuda_graph.py"):
        return layers + (rounded(1024) + rounded(1) if name == "train_plain.py" else 0)
    if name == "train_amp.py":
        convolutions = rounded(3 * 9 * 64) + rounded(64) + rounded(64 * 9 * 128) + rounded(128)
        return convolutions + 2 * (rounded(64) + rounded(128)) + rounded(128 * 10) + rounded(10)
    if name == "train_ddp.py":
        return 4 * (SPLIT + WHOLE)
    if name == "track_fsdp.py":
        return 4 * (rounded(4096 * 4096 // world) + rounded(4096 // world))
    if name == "train_tp_fsdp2.py":
        tp, norms = args[1], 2 * LAYERS + 1
        ranks = world // tp
        return 4 * (SPLIT // tp + 2 * VOCAB * DIM) // ranks + norms * rounded(DIM // ranks)
    return None


def phases_of_steps(run):
    return [set(step["phases"]) - {"other"} for step in run.json["steps"]]


WHOLE_STEP = {"forward", "backward", "optimizer"}


def rounded(elements, bytes_each=4):
    """The bytes that the caching allocator takes for a tensor."""
    return -(-elements * bytes_each // 512) * 512


WORKSPACE = 32 * 2**20  # that torch gives each of cuBLAS's handles on a Hopper GPU; forward and backward have their own


# An example without torch.distributed can also run as one rank of many, with the same bytes.
alone_or_among_many = pytest.mark.parametrize("world, rank", needs.ends([(1, 0), (2, 1), (64, 63)]))


@alone_or_among_many
def test_the_peak_of_the_plain_loop_equals_its_formula(example, world, rank):
    width, layers, batch = 1024, 4, 64
    run = example("train_plain.py", world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    parameters = layers * (rounded(width * width) + rounded(width)) + rounded(width) + rounded(1)
    data = rounded(batch * width) + rounded(batch) + rounded(1)  # inputs, targets, loss
    kept = 4 * parameters + data + 2 * WORKSPACE  # parameters, gradients, two moments
    assert at_rest(run) == [kept] * 3
    for step in run.json["steps"]:
        # AdamW's foreach form takes a temporary of the parameters' size.
        assert step["active_peak_bytes"] == kept + parameters
    assert run.json["before_steps"]["phases"]["other"]["active_end_bytes"] == parameters + data - rounded(1)
    assert run.json["peak"]["active_bytes"] == kept + parameters


@alone_or_among_many
def test_the_mixed_precision_example_equals_its_formula(example, world, rank):
    channels, image, batch = 64, 64, 16
    run = example("train_amp.py", world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    convolutions = rounded(3 * 9 * channels) + rounded(channels) + rounded(channels * 9 * 2 * channels)
    norms = 4 * (rounded(channels) + rounded(2 * channels)) + 2 * rounded(1, bytes_each=8)
    model = convolutions + rounded(2 * channels) + norms + rounded(2 * channels * 10) + rounded(10)
    data = rounded(batch * 3 * image * image) + rounded(batch, bytes_each=8)
    assert run.json["before_steps"]["phases"]["other"]["active_end_bytes"] == model + data
    check_recorded(run, "train_amp.py")


@alone_or_among_many
def test_the_captured_step_equals_its_formula(example, world, rank):
    width, layers, batch, warm_ups, replays = 1024, 4, 64, 3, 3
    run = example("train_cuda_graph.py", steps=warm_ups + 1 + replays, world=world, rank=rank)
    assert phases_of_steps(run)[: warm_ups + 1] == [WHOLE_STEP] * (warm_ups + 1)
    parameters = layers * (rounded(width * width) + rounded(width))
    before = run.json["before_steps"]["phases"]["other"]["active_end_bytes"]
    assert before == parameters + 2 * rounded(batch * width)
    # A replay allocates nothing: the graph has its memory since the capture.
    assert len(set(at_rest(run)[warm_ups:])) == 1
    check_recorded(run, "train_cuda_graph.py")


# The Llama of the distributed examples, in parameters: those that tensor parallelism splits, and the others.
DIM, LAYERS, HEADS, KV_HEADS, FFN, VOCAB = 256, 4, 8, 4, 688, 1024
BATCH, SEQUENCE = 2, 256
SPLIT = LAYERS * (2 * DIM * DIM + 2 * DIM * (DIM * KV_HEADS // HEADS) + 3 * DIM * FFN)
WHOLE = LAYERS * 2 * DIM + DIM + 2 * VOCAB * DIM
# The same as FSDP2's groups of (rows, columns).
NORM, KEYS = (DIM, 1), (DIM * KV_HEADS // HEADS, DIM)
BLOCK = [(DIM, DIM), KEYS, KEYS, (DIM, DIM), (FFN, DIM), (DIM, FFN), (FFN, DIM), NORM, NORM]
GROUPS = [BLOCK] * LAYERS + [[(VOCAB, DIM), NORM, (VOCAB, DIM)]]
# The complex table of rotary positions; the batch and its targets; the loss.
DATA = rounded(SEQUENCE * DIM // HEADS // 2, bytes_each=8) + rounded(BATCH * (SEQUENCE + 1), bytes_each=8) + rounded(1)


def parameter_bytes(run):
    return int(re.search(r"(\d+) bytes of parameters", run.stdout).group(1))


def shards(group, ranks, rank):
    """The elements of each parameter on a rank: padded to the first rank's size, and the rank's own."""
    for rows, columns in group:
        chunk = -(-rows // ranks)
        yield chunk * columns, max(0, min(chunk, rows - rank * chunk)) * columns


def fsdp2_at_rest(ranks, rank):
    """The bytes that a rank of FSDP2 keeps after a step: its rows of each parameter, padded to the first rank's rows; two
    moments without padding; the gradients of each group, from one reduction; workspaces and data."""
    total = DATA + 2 * WORKSPACE
    for group in GROUPS:
        padded, own = zip(*shards(group, ranks, rank))
        total += sum(map(rounded, padded)) + 2 * sum(map(rounded, own)) + rounded(sum(padded))
    return total


@pytest.mark.parametrize("world, rank", needs.ends([(2, 1), (8, 0), (64, 63)]))
def test_ddp_equals_its_formula_at_several_world_sizes(example, world, rank):
    run = example("train_ddp.py", world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    check_recorded(run, f"train_ddp.py, rank {rank} of {world}")


@pytest.mark.parametrize("world, rank", [(8, 3), (64, 63)])
def test_fsdp1_equals_its_formula_at_two_world_sizes(example, world, rank):
    run = example("train_fsdp1.py", world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    check_recorded(run, f"train_fsdp1.py, rank {rank} of {world}")


FSDP2 = [
    ("", 2, 1),
    ("", 8, 3),
    ("", 64, 63),
    ("--checkpoint full", 2, 1),
    ("--checkpoint full", 8, 3),
    ("--checkpoint full", 64, 63),
    ("--hsdp 2", 4, 3),
    ("--hsdp 2", 16, 5),
    ("--accumulate 3", 2, 1),
    ("--accumulate 3", 8, 3),
    ("--hsdp 2 --accumulate 3 --no-sync", 4, 3),
    ("--hsdp 2 --accumulate 3 --no-sync", 16, 5),
]


@pytest.mark.parametrize("options, world, rank", FSDP2)
def test_fsdp2_keeps_its_shards_and_peaks_as_recorded(example, options, world, rank):
    run = example("train_fsdp2.py", *options.split(), world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    ranks = world // 2 if "--hsdp" in options else world  # ranks of one replica
    if all(rows % ranks == 0 for group in GROUPS for rows, _ in group):
        assert parameter_bytes(run) == 4 * (SPLIT + WHOLE) // ranks
    assert at_rest(run) == [fsdp2_at_rest(ranks, rank % ranks)] * 3
    check_recorded(run, f"{' '.join(['train_fsdp2.py', *options.split()])}, rank {rank} of {world}")


@pytest.mark.parametrize("tp, world, rank", [(1, 8, 3), (4, 16, 5)])
def test_tensor_parallel_with_fsdp2_equals_its_formula(example, tp, world, rank):
    run = example("train_tp_fsdp2.py", "--tp", tp, world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    assert parameter_bytes(run) == 4 * (SPLIT // tp + WHOLE) // (world // tp)
    check_recorded(run, f"train_tp_fsdp2.py --tp {tp}, rank {rank} of {world}")


# Small, because the compiler takes most of the time.
COMPILED = [
    ("train_compile.py", "--layers 1", 64, 63),
    ("train_compile.py", "--layers 1", 1, 0),
    ("train_compile.py", "--layers 1 --eager", 1, 0),
    ("train_compile_fsdp2.py", "--layers 1 --checkpoint full", 8, 3),
    ("train_compile_fsdp2.py", "--layers 1 --checkpoint full", 64, 63),
    ("train_compile_fsdp2.py", "--layers 1 --checkpoint full --eager", 8, 3),
]


@needs_triton
@pytest.mark.parametrize(
    "name, options, world, rank", [pytest.param(*case, marks=pytest.mark.xdist_group(case[0])) for case in COMPILED]
)
def test_compiled_examples_have_the_state_of_their_eager_versions(example, name, options, world, rank):
    run = example(name, *options.split(), world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    # Only the last step: the first one's memory depends on the compiler's cache.
    found = {"steps": example_bytes.bytes_of(run.json)["steps"][-1:]}
    where = "" if name == "train_compile.py" else f", rank {rank} of {world}"
    example_bytes.check(f"{name} {options}{where}", found)


@needs_transformers
@pytest.mark.parametrize("model", ["llama", "gpt2", "qwen2"])
def test_a_sharded_transformers_model_keeps_its_share_of_the_whole(example, model):
    alone, sharded = example("train_hf.py", model), example("train_hf.py", model, world=8, rank=3)
    assert phases_of_steps(alone) == phases_of_steps(sharded) == [WHOLE_STEP] * 3
    assert parameter_bytes(alone) == 8 * parameter_bytes(sharded) > 0
    others = 7 * parameter_bytes(sharded)
    # A rank keeps its shard of parameters, gradients and two moments; small shards are rounded up.
    ends = [run.json["steps"][-1]["phases"]["optimizer"]["active_end_bytes"] for run in (alone, sharded)]
    assert 3 * others < ends[0] - ends[1] <= 4 * others


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="transformers is installed")
def test_without_transformers_the_example_says_what_to_install(plimsoll_run):
    result = plimsoll_run(str(EXAMPLES / "train_hf.py"))
    assert result.code == 1
    assert "pip install transformers" in result.stderr + result.stdout


def test_the_drop_in_tracker_agrees_with_the_run(example):
    """`plimsoll run` still sees all memory if the script has its own tracker."""
    run = example("track_fsdp.py", world=16, steps=2)
    peak = run.json["peak"]
    total = re.search(r"Device: cuda:0\n(?:\t.*\n)*\tTotal: ([0-9.]+) MiB", run.stdout)[1]
    assert float(total) == round(peak["active_bytes"] / 2**20, 2)
    assert (peak["step"], peak["phase"], peak["module"], peak["stage"]) == (1, "backward", "2", "backward")
    told = dict(re.findall(r"\t(.+): ([0-9.]+) MiB", run.stdout.partition("Device: cuda:0")[2]))
    for category in ("Sharded Param", "Unsharded Param", "All Gather", "Reduce Scatter", "OptState", "Temp"):
        assert float(told[category]) == round(peak["categories"][category] / 2**20, 2)


@pytest.mark.parametrize("world, rank", needs.ends([(1, 0), (8, 0), (64, 63)]))
def test_a_llama_has_its_categories_at_any_world_size(example, world, rank):
    run = example("train_llama.py", world=world, rank=rank)
    assert phases_of_steps(run) == [WHOLE_STEP] * 3
    check_recorded(run, f"train_llama.py, rank {rank} of {world}")
