"""FSDP1's state dicts on one rank of many, as test_lone_rank.py runs them; prints how many cases passed.

Each kind of state dict is saved, has the full model's state, takes the memory of its tensors, and loads again.
"""

import gc
import itertools

import torch
import torch.distributed as dist
from lone_rank_place import device, rank
from torch.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

WIDTH, LAYERS = 512, 4


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)  # fewer elements than ranks
        self.wide = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.wide(x) * self.norm(x[..., :4]).sum()


def trained(use_orig_params, strategy, frozen=False):
    layers = torch.nn.Sequential(*(Layer() for _ in range(LAYERS)), torch.nn.LayerNorm(WIDTH))
    if frozen:
        layers[0].wide.weight.requires_grad_(False)
    names = [name for name, parameter in layers.named_parameters() if parameter.requires_grad]
    model = FSDP(
        layers,
        auto_wrap_policy=ModuleWrapPolicy({Layer, torch.nn.LayerNorm}),
        sharding_strategy=strategy,
        use_orig_params=use_orig_params,
        device_id=device,
    )
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    return model, optimizer, names


def step(model, optimizer):
    model(torch.randn(4, WIDTH, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def configs():
    for offload, rank0_only in itertools.product((False, True), (False, True)):
        yield (
            StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(offload_to_cpu=offload, rank0_only=rank0_only),
            FullOptimStateDictConfig(offload_to_cpu=offload, rank0_only=rank0_only),
        )
    for offload in (False, True):
        yield (
            StateDictType.SHARDED_STATE_DICT,
            ShardedStateDictConfig(offload_to_cpu=offload),
            ShardedOptimStateDictConfig(offload_to_cpu=offload),
        )


def bytes_of(state, kind):
    """The bytes of a state dict's tensors of one kind, by device."""
    found = {"cpu": 0, "cuda": 0}
    for value in (entry[kind] for entry in state.values()):
        shards = value.local_shards() if hasattr(value, "local_shards") else None
        for tensor in [value] if shards is None else [shard.tensor for shard in shards]:
            found[tensor.device.type] += tensor.numel() * tensor.element_size()
    return found


def saved_and_loaded(model, optimizer, names, config):
    """A state dict of `config` has the full model's state in the right shapes, on the devices that `config` says."""
    kind, of_parameters, of_state = config
    is_full = kind is StateDictType.FULL_STATE_DICT
    with FSDP.summon_full_params(model, writeback=False):
        shapes = {
            name.replace("_fsdp_wrapped_module.", ""): parameter.shape for name, parameter in model.named_parameters()
        }
    with FSDP.state_dict_type(model, kind, of_parameters, of_state):
        parameters = model.state_dict()
        gc.collect()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        saved = FSDP.optim_state_dict(model, optimizer)
        peak, kept = torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before
        largest = max(shapes[name].numel() for name in names)
        assert peak >= 4 * largest, (peak, largest)  # a full flat parameter's moment, gathered on the device
        if is_full and of_state.rank0_only and rank > 0:
            assert saved == {} and parameters == {} and kept == 0, kept
        else:
            state = saved["state"]
            assert sorted(state) == sorted(names), sorted(state)
            assert all(set(entry) == {"step", "exp_avg", "exp_avg_sq"} for entry in state.values()), state
            assert all(entry["step"].item() >= 1 for entry in state.values())
            assert all(entry["exp_avg"].shape == shapes[name] for name, entry in state.items())
            held = bytes_of(state, "exp_avg")
            whole = 4 * sum(shapes[name].numel() for name in names)
            assert not is_full or sum(held.values()) == whole, (held, whole)
            assert is_full or sum(held.values()) <= whole // 2, (held, whole)
            assert held["cuda" if of_state.offload_to_cpu else "cpu"] == 0, held
            if not of_state.offload_to_cpu:
                assert 2 * held["cuda"] <= kept, (held, kept)
        with_state = {id(parameter) for parameter in optimizer.state}
        loadable = FSDP.optim_state_dict_to_load(model, optimizer, saved)
        optimizer.load_state_dict(loadable)
        model.load_state_dict(parameters if parameters else model_state(model))
    assert {id(parameter) for parameter in optimizer.state} == with_state
    for parameter, entry in optimizer.state.items():
        assert entry["exp_avg"].shape == parameter.shape and entry["exp_avg"].device == device, parameter.shape
    step(model, optimizer)


def model_state(model):
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=False)):
        return model.state_dict()


def a_state_that_nobody_knows_is_asked_for():
    """A new optimizer of a rank that receives the state that rank 0 read."""
    model, _, _ = trained(True, ShardingStrategy.FULL_SHARD)
    fresh = torch.optim.AdamW(model.parameters())
    with FSDP.state_dict_type(
        model,
        StateDictType.FULL_STATE_DICT,
        FullStateDictConfig(rank0_only=True),
        FullOptimStateDictConfig(rank0_only=True),
    ):
        try:
            FSDP.optim_state_dict_to_load(model, fresh, {})
        except RuntimeError as error:
            assert f"rank {rank} needs the optimizer state" in str(error) and "--rank 0" in str(error), error
        else:
            raise AssertionError("what rank 0 has read cannot be known")


def main():
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    passed = 0
    models = [
        (True, ShardingStrategy.FULL_SHARD, False),
        (True, ShardingStrategy.FULL_SHARD, True),
        (True, ShardingStrategy.SHARD_GRAD_OP, False),
        (False, ShardingStrategy.FULL_SHARD, False),
    ]
    for of_model in models:
        job = trained(*of_model)
        for config in configs():
            saved_and_loaded(*job, config)
            passed += 1
    # No step has run, so no rank has state.
    model = FSDP(torch.nn.Linear(8, 8), use_orig_params=True, device_id=device)
    assert FSDP.optim_state_dict(model, torch.optim.AdamW(model.parameters()))["state"] == {}
    if rank > 0:
        a_state_that_nobody_knows_is_asked_for()
    print("passed", passed)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
