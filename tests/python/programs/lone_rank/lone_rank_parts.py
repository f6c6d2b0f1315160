"""Checks of lone_rank_checks.py: DDP, checkpoints and pipelines, which use process groups."""

import copy
import gc
import os

import torch
import torch.distributed as dist
from lone_rank_place import device, rank, world


def ddp_rebuilds_its_buckets_as_with_peers():
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    for option in (None, "static_graph", "gradient_as_bucket_view", "find_unused_parameters"):
        model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6))).to(device)
        options = {option: True} if option else {}
        ddp = DistributedDataParallel(model, device_ids=[device.index], bucket_cap_mb=2, **options)
        for _ in range(4):  # DDP's own statistics, read below, are late
            ddp(torch.randn(4, 512, device=device)).sum().backward()
        data = ddp._get_ddp_logging_data()
        key = "bucket_sizes" if option == "find_unused_parameters" else "rebuilt_bucket_sizes"
        sizes = [int(size) for size in data[key].split(", ")]
        assert sum(sizes) == 6 * (512 * 512 + 512) * 4
        # The parameter that takes a bucket past 2 MiB closes it: a weight with the biases beside it.
        assert key == "bucket_sizes" or sizes == [2 * (512 * 512 + 512) * 4] * 3, (option, sizes)
        assert all(parameter.grad is not None for parameter in model.parameters())


def ddp_on_the_cpu_has_the_gradients_of_its_module():
    from torch.nn.parallel import DistributedDataParallel

    for backend in ("gloo", "cpu:gloo,cuda:nccl"):
        dist.init_process_group(backend)
        plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
        model = copy.deepcopy(plain)
        ddp = DistributedDataParallel(model)
        for _ in range(3):
            batch = torch.randn(6, 4)
            for trained in (plain, ddp):
                trained(batch).square().mean().backward()
            for own, reduced in zip(plain.parameters(), model.parameters()):
                assert torch.equal(own.grad, reduced.grad)
        with ddp.no_sync():
            ddp(batch).sum().backward()
        dist.destroy_process_group()


def a_rank_saves_its_part_of_a_checkpoint():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict

    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:  # torch 2.5
        from torch.distributed._composable.fsdp import fully_shard

    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Linear(512, 512)).to(device)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 512, device=device)).sum().backward()
    optimizer.step()
    parameters, moments = get_state_dict(model, optimizer)
    state = {"model": parameters, "optimizer": moments, "step": 1}
    before = torch.cuda.memory_stats()["active_bytes.all.current"]
    dcp.save(state, checkpoint_id="saved")
    dcp.async_save(state, checkpoint_id="saved later").result()
    assert torch.cuda.memory_stats()["active_bytes.all.current"] == before
    shard = 3 * 2 * (512 * 512 + 512) * 4 // world  # parameters and two moments
    for folder in ("saved", "saved later"):
        written = os.path.getsize(f"{folder}/__{rank}_0.distcp")
        assert shard <= written < shard + 100_000, written
        assert os.path.exists(f"{folder}/.metadata") == (rank == 0)
    if rank == 0:
        dcp.load(state, checkpoint_id="saved")
    try:
        dcp.save(state, checkpoint_id=f"saved/__{rank}_0.distcp/below a file")
    except BaseException as error:  # the declared base of the coordinator's CheckpointException
        assert "Not a directory" in str(error), error
    else:
        raise AssertionError("a checkpoint that cannot be written must not pass for one that was")


def _pipeline(schedule, stages, steps=2):
    batch = torch.randn(16, 256, device=device)
    first = any(stage.is_first for stage in stages)
    last = any(stage.is_last for stage in stages)
    for _ in range(steps):
        schedule.step(*([batch] if first else []), **({"target": batch} if last else {}))
    assert all(parameter.grad is not None for stage in stages for parameter in stage.submod.parameters())
    for stage in stages:
        infos = [info for infos in stage.args_recv_info.values() for info in infos]
        received = [info.buffer.shape for info in infos if info.buffer is not None]
        assert received == ([] if stage.is_first else [torch.Size([2, 256])] * 8), received


def pipeline_stages_run_with_what_they_can_know():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B

    dist.init_process_group("nccl", device_id=device)
    loss = torch.nn.functional.mse_loss
    example = torch.empty(2, 256, device="meta", requires_grad=True)

    def stage(index, count, **known):
        layers = torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)
        return PipelineStage(torch.nn.Sequential(*layers).to(device), index, count, device, **known)

    if rank > 0:
        try:
            alone = stage(rank, world)
            _pipeline(Schedule1F1B(alone, 8, loss_fn=loss), [alone])
        except Exception as error:
            assert "input_args" in str(error) and f"stage {rank} of {world}" in str(error), error
        else:
            raise AssertionError("this stage cannot know its input")
    both = {"input_args": example, "output_args": example}
    taken = []
    for known in (both, {}, {"input_args": example}, both):
        if known or rank == 0:
            gc.collect()
            before = torch.cuda.memory_allocated()
            alone = stage(rank, world, **known)
            _pipeline(Schedule1F1B(alone, 8, loss_fn=loss), [alone])
            taken.append(torch.cuda.memory_allocated() - before)
            assert (alone._inference_mode.value == "static") == (len(known) == 2)
            del alone
    assert len(set(taken[1:])) == 1, taken  # the first also made cuBLAS's workspace
    if rank == 3:  # the last stage of the first half of the ranks
        last = stage(3, 4, input_args=example, group=dist.new_group(range(4)))
        assert last.is_last
        _pipeline(Schedule1F1B(last, 8, loss_fn=loss), [last])
    # Two stages on each rank: the second receives the output of the first.
    first = stage(rank, 2 * world, **({"input_args": example} if rank else {}))
    stages = [first, stage(rank + world, 2 * world)]
    _pipeline(ScheduleInterleaved1F1B(stages, 8, loss_fn=loss), stages)
