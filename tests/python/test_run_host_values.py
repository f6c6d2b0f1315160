"""Where a library asks the device what the host knows, the host answers, and zeros do not."""

import importlib.util

import pytest

pytestmark = pytest.mark.warm

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)

# -- transformers --------------------------------------------------------------------------------------------------------

LAYERS, HEADS, HEAD_DIM, VOCABULARY, SEQUENCES, PROMPT = 2, 4, 128, 256, 4, 64
MODEL = f"""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    def a_model(device="cuda"):
        config = LlamaConfig(
            hidden_size={HEADS * HEAD_DIM}, intermediate_size=512, num_hidden_layers={LAYERS}, num_attention_heads={HEADS},
            vocab_size={VOCABULARY}, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        )
        return LlamaForCausalLM(config).to(device).eval()
    model = a_model()
    steps = []
    model.model.register_forward_hook(lambda *_: steps.append(1))
    prompt = torch.randint({VOCABULARY}, ({SEQUENCES}, {PROMPT}), device="cuda")
"""


@needs_transformers
def test_a_generation_ends_at_its_length(plimsoll_run, script):
    text = f"""
    torch.distributed.init_process_group("nccl")
    def generate(tokens, **how):
        steps.clear()
        found = model.generate(prompt, **how)
        assert found.shape == ({SEQUENCES}, {PROMPT} + tokens), (found.shape, tokens, how)
        assert len(steps) == tokens, (len(steps), tokens, how)  # The prompt's forward gives the first.
    for how in (
        dict(do_sample=False), dict(do_sample=True, top_k=5), dict(num_beams=4), dict(num_beams=4, early_stopping=True),
        dict(num_beams=2, do_sample=True), dict(synced_gpus=True), dict(synced_gpus=True, num_beams=2), dict(use_cache=False),
    ):
        for tokens in (5, 1):
            generate(tokens, max_new_tokens=tokens, **how)
        generate(3, max_length={PROMPT} + 3, **how)
    assert model._has_unfinished_sequences.__name__ == "_has_unfinished_sequences"
    """
    run = plimsoll_run("--world-size", "2", script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


@needs_transformers
def test_the_beams_that_are_returned_are_as_long_as_those_of_the_cpu(plimsoll_run, script):
    text = """
    wanted = dict(max_new_tokens=5, num_beams=4, return_dict_in_generate=True, output_scores=True)
    for returned in (1, 3):
        cpu, cuda = (a_model(d).generate(prompt.to(d), num_return_sequences=returned, **wanted) for d in ("cpu", "cuda"))
        for name in ("sequences", "sequences_scores"):
            assert cuda[name].shape == cpu[name].shape, (name, cuda[name].shape, cpu[name].shape)
        assert cuda.sequences.is_cuda and len(cuda.scores) == 5
        assert cuda.beam_indices.shape == (cuda.sequences.shape[0], 5)
    """
    # On the CPU values are real: without an end in the vocabulary, no beam ends early.
    run = plimsoll_run(script(MODEL.replace("eos_token_id=2", "eos_token_id=None") + text), timeout=120)
    assert run.code == 0, run.stderr


@needs_transformers
def test_the_cache_of_the_full_length_is_in_the_peak(plimsoll_run, script):
    new = 64
    text = f"""
    with torch.no_grad():
        model(prompt)  # with a workspace for cuBLAS, which stays
    before = torch.cuda.memory_allocated()
    found = model.generate(prompt, max_new_tokens={new}, return_dict_in_generate=True)
    cache = torch.cuda.memory_allocated() - before - found.sequences.nbytes
    assert found.past_key_values.get_seq_length() == {PROMPT + new - 1}
    print(before, cache)
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    before, cache = map(int, run.stdout.split()[:2])
    # Keys and values of every token in every layer; of the last token there are none, since it is not fed in again.
    one_layers_keys = SEQUENCES * HEADS * (PROMPT + new - 1) * HEAD_DIM * 4
    assert cache == 2 * LAYERS * one_layers_keys
    assert run.json["peak"]["active_bytes"] >= before + cache


@needs_transformers
def test_an_error_in_a_generation_does_not_end_the_next(plimsoll_run, script):
    text = f"""
    from transformers import MaxLengthCriteria, StoppingCriteriaList
    own = StoppingCriteriaList([MaxLengthCriteria({PROMPT} + 4)])
    class Streamer:
        def put(self, tokens):
            if len(steps): raise KeyError("mine")
        def end(self): pass
    try:
        model.generate(prompt[:1], stopping_criteria=own, streamer=Streamer())
    except KeyError:
        pass
    own(torch.zeros(1, 500, device="cuda", dtype=torch.long), None)  # over, as far as it knows
    assert model.generate(prompt, stopping_criteria=own).shape == ({SEQUENCES}, {PROMPT} + 4)
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


@needs_transformers
def test_assisted_decoding_ends_and_the_report_says_that_it_is_not_whole(plimsoll_run, script):
    text = f"""
    print(model.generate(prompt[:1], max_new_tokens=5, do_sample=False, assistant_model=a_model()).shape)
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr
    assert [defect.partition(":")[0] for defect in run.json["defects"]] == [
        f"a generation, from token {PROMPT} of {PROMPT + 5} on"
    ]


@needs_transformers
def test_a_generation_on_the_cpu_ends_where_its_values_say(plimsoll_run, script):
    text = f"""
    model = a_model("cpu")
    model.lm_head.weight.data.zero_()  # Every token is as likely, and the first is taken.
    out = model.generate(prompt.cpu(), max_new_tokens=5, do_sample=False, eos_token_id=0)
    assert out.shape == ({SEQUENCES}, {PROMPT} + 1), out.shape
    """
    run = plimsoll_run(script(MODEL + text), timeout=120)
    assert run.code == 0, run.stderr


# -- accelerate ----------------------------------------------------------------------------------------------------------

# As in accelerate 1.15, of which this is what matters.
FAKE_RANDOM = """
import enum, torch
class RNGType(enum.Enum):
    TORCH = "torch"
    CUDA = "cuda"
    GENERATOR = "generator"
def synchronize_rng_state(rng_type=None, generator=None):
    if rng_type == RNGType.TORCH:
        rng_state = torch.get_rng_state()
    elif rng_type == RNGType.CUDA:
        rng_state = torch.cuda.get_rng_state()
    elif rng_type == RNGType.GENERATOR:
        assert generator is not None, "Need a generator to synchronize its seed."
        rng_state = generator.get_state()
    rng_state = rng_state.to("cuda")
    torch.distributed.broadcast(rng_state, 0)
    rng_state = rng_state.cpu()
    if rng_type == RNGType.TORCH:
        torch.set_rng_state(rng_state)
    elif rng_type == RNGType.CUDA:
        torch.cuda.set_rng_state(rng_state)
    elif rng_type == RNGType.GENERATOR:
        generator.set_state(rng_state)
def synchronize_rng_states(rng_types, generator=None):
    for rng_type in rng_types:
        synchronize_rng_state(RNGType(rng_type), generator=generator)
"""
FAKE_OPERATIONS = """
import torch
def recursively_apply(func, data, *args, error_on_other_type=False, **kwargs):
    if isinstance(data, dict):
        return {key: recursively_apply(func, value, *args, **kwargs) for key, value in data.items()}
    return func(data, *args, **kwargs)
def gather(tensor):
    output = tensor.new_empty(2 * tensor.shape[0], *tensor.shape[1:])
    torch.distributed.all_gather_into_tensor(output, tensor)
    return output
def pad_across_processes(tensor, dim=0, pad_index=0, pad_first=False):
    def pad(tensor, dim=0, pad_index=0, pad_first=False):
        if dim >= len(tensor.shape) or dim < -len(tensor.shape):
            return tensor
        size = torch.tensor(tensor.shape, device=tensor.device)[None]
        max_size = max(s[dim] for s in gather(size).cpu())
        if max_size == tensor.shape[dim]:
            return tensor
        new_size = list(tensor.shape)
        new_size[dim] = max_size
        new_tensor = tensor.new_zeros(tuple(new_size)) + pad_index
        new_tensor[tuple(slice(0, tensor.shape[dim]) if i == dim else slice(None) for i in range(len(new_size)))] = tensor
        return new_tensor
    return recursively_apply(pad, tensor, error_on_other_type=True, dim=dim, pad_index=pad_index, pad_first=pad_first)
"""


@pytest.fixture
def fake_accelerate(tmp_path):
    utils = tmp_path / "accelerate" / "utils"
    utils.mkdir(parents=True)
    (utils.parent / "__init__.py").write_text("")
    (utils / "__init__.py").write_text("from .random import *\nfrom .operations import *\n")
    (utils / "random.py").write_text(FAKE_RANDOM)
    (utils / "operations.py").write_text(FAKE_OPERATIONS)


DISTRIBUTED = """
    import torch
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl")
    from accelerate import utils
"""


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_generator_that_ranks_agree_on_keeps_its_state(plimsoll_run, script, fake_accelerate, rank):
    text = """
    own = torch.Generator().manual_seed(3)
    states = lambda: [torch.get_rng_state(), torch.cuda.get_rng_state(), own.get_state()]
    before = states()
    reads = lambda: torch.cuda.memory_stats()["allocation.all.allocated"]
    count = reads()
    utils.synchronize_rng_states(["torch", "cuda", "generator"], own)
    assert all(map(torch.equal, states(), before))
    assert reads() - count == 3  # Each went to the device all the same.
    assert utils.synchronize_rng_state.__name__ == "synchronize_rng_state"
    try:
        utils.synchronize_rng_states(["generator"])
    except AssertionError as error:
        assert "Need a generator" in str(error)
    else:
        raise SystemExit("the library's own words are gone")
    """
    run = plimsoll_run("--world-size", "2", "--rank", rank, script(DISTRIBUTED + text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 3 and run.json["defects"] == []


def test_what_is_padded_to_the_largest_of_any_rank_is_as_large_as_here(plimsoll_run, script, fake_accelerate):
    text = """
    x = torch.ones(4, 5, device="cuda")
    for dim in (0, 1, -1, 2):
        assert utils.pad_across_processes(x, dim) is x, dim
    assert utils.pad_across_processes({"a": x}, dim=1, pad_first=True)["a"] is x
    """
    run = plimsoll_run("--world-size", "2", script(DISTRIBUTED + text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 4 and run.json["defects"] == []


# -- torch.distributions -------------------------------------------------------------------------------------------------


def test_arguments_of_distributions_on_the_device_are_taken_as_valid(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Categorical, Dirichlet, MultivariateNormal, Normal, Uniform
    x = torch.ones(4, 3, device="cuda")
    for one in (Categorical(logits=x), Categorical(probs=x), Normal(x, x), Uniform(x - 1, x), Dirichlet(x)):
        assert one.log_prob(one.sample()).is_cuda
    MultivariateNormal(x, covariance_matrix=torch.eye(3, device="cuda"))
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
    assert run.json["defects"] == []


def test_the_validation_is_made_on_the_device_and_read_back(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Normal
    x = torch.ones(4, 3, device="cuda")
    def allocations(validate):
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        Normal(x, x, validate_args=validate)
        return torch.cuda.memory_stats()["allocation.all.allocated"] - before
    # Of `loc` whether it equals itself, of `scale` whether it is above zero; of each, whether all are.
    assert allocations(True) - allocations(False) == 4
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 2


def test_arguments_of_distributions_on_the_cpu_are_validated(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Normal
    try:
        Normal(torch.zeros(2), -torch.ones(2))
    except ValueError as error:
        assert "Expected parameter scale" in str(error)
    else:
        raise SystemExit("taken as valid")
    assert torch._is_all_true(torch.tensor([True, False])).item() is False
    assert torch._is_all_true(torch.ones(2, dtype=torch.bool, device="meta")).is_meta
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode():
        fake = torch._is_all_true(torch.ones(2, dtype=torch.bool, device="cuda"))
        assert fake.device.type == "cuda" and fake.shape == ()
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr


def test_a_normal_sample_is_what_torch_draws(plimsoll_run, script):
    """The draw is made without torch.normal's own check; of what is on the CPU, it is torch's."""
    text = """
    import torch
    from torch.distributions import Normal
    mean = torch.zeros(3, 1 << 18, device="cuda")
    one = Normal(mean, 1.0)
    before = torch.cuda.memory_allocated()
    drawn = one.sample((2,))
    assert drawn.shape == (2, 3, 1 << 18) and drawn.is_contiguous() and not drawn.requires_grad
    assert torch.cuda.memory_allocated() - before == drawn.nbytes
    assert Normal(mean[:, :0], 1.0).sample().shape == (3, 0)
    torch.manual_seed(3); own = Normal(torch.zeros(5), torch.ones(5)).sample()
    torch.manual_seed(3); assert torch.equal(own, torch.normal(torch.zeros(5), torch.ones(5)))
    try:
        Normal(torch.zeros(2), -torch.ones(2), validate_args=False).sample()
    except RuntimeError as error:
        assert "std >= 0" in str(error)
    else:
        raise SystemExit("drawn")
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
    # Of two parameters each, whether they are valid; of the deviations of the first sample, twice.
    assert run.json["read_backs"] == 2 * 2 + 2


def test_the_compiler_sees_the_validation_as_ever(plimsoll_run, script):
    text = """
    import torch
    from torch.distributions import Normal
    graphs = []
    def backend(graph, inputs):
        graphs.append([node.target for node in graph.graph.nodes if node.op.startswith("call_")])
        return graph.forward
    def is_valid(x): return torch._is_all_true(x > 0)
    def loss(x):
        normal = Normal(x, x.exp(), validate_args=True)
        return normal.log_prob(normal.sample()).sum()
    for device in ("cpu", "cuda"):
        torch._dynamo.reset()
        for function in (is_valid, loss):
            torch.compile(function, backend=backend)(torch.ones(3, device=device))
    half = len(graphs) // 2
    assert graphs[:half] == graphs[half:] and torch._is_all_true in graphs[0], graphs
    """
    run = plimsoll_run(script(text))
    assert run.code == 0, run.stderr
