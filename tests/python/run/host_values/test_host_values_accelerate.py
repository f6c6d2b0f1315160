"""accelerate sends values that ranks agree on to the device and back: the host keeps them."""

import pytest

pytestmark = pytest.mark.warm

# The relevant part of accelerate 1.15.
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


def test_padding_to_the_largest_rank_gives_this_ranks_own_size(plimsoll_run, script, fake_accelerate):
    text = """
    x = torch.ones(4, 5, device="cuda")
    for dim in (0, 1, -1, 2):
        assert utils.pad_across_processes(x, dim) is x, dim
    assert utils.pad_across_processes({"a": x}, dim=1, pad_first=True)["a"] is x
    """
    run = plimsoll_run("--world-size", "2", script(DISTRIBUTED + text))
    assert run.code == 0, run.stderr
    assert run.json["read_backs"] == 4 and run.json["defects"] == []
