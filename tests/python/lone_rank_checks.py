"""Checks that test_lone_rank.py runs in one process of `plimsoll run`: `lone_rank_checks.py NAME…`.

Each begins without a process group, as the rank that the environment names, and ends with none. What came of each is
printed in one line of JSON, its name and the traceback of what it raised.
"""

import datetime
import functools
import gc
import json
import operator
import os
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def initialises_with_every_backend():
    for backend in ("nccl", "gloo", "cpu:gloo,cuda:nccl", None):
        dist.init_process_group(backend)
        assert (dist.get_rank(), dist.get_world_size()) == (rank, world)
        dist.barrier()
        dist.destroy_process_group()
        assert not dist.is_initialized()


def timeouts_of_every_backend_can_be_changed():
    for backend in ("nccl", "gloo", "cpu:gloo,cuda:nccl"):
        dist.init_process_group(backend)
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=100))
        dist.destroy_process_group()


def every_rendezvous_returns_at_once_and_makes_no_file():
    for where in ("env://", "tcp://127.0.0.1:29501", f"file://{os.getcwd()}/rendezvous"):
        dist.init_process_group("nccl", init_method=where, rank=rank, world_size=world)
        dist.all_reduce(torch.ones(1, device=device))
        dist.destroy_process_group()
    assert not os.path.exists("rendezvous")


def stores_do_not_wait():
    tcp = dist.TCPStore("127.0.0.1", 29502, world, rank == 0)
    assert (tcp.host, tcp.port) == ("127.0.0.1", 29502)
    for inner in (tcp, dist.FileStore("nowhere", world)):
        store = dist.PrefixStore("mine", inner)
        store.set("key", "value")
        assert store.get("key") == b"value"
        assert store.get("from a peer") == b""
        assert store.multi_get(["key", "other"]) == [b"value", b""]
        store.wait(["waited for"])
        assert store.add("arrived", 1) == world == store.add("arrived", 0)
        assert store.compare_set("lock", "", "mine") == b"mine"
        assert store.compare_set("lock", "other", "yours") == b"mine"
        assert store.delete_key("key") and not store.delete_key("key")
        dist.init_process_group("nccl", store=store, rank=rank, world_size=world)
        dist.barrier()
        dist.destroy_process_group()


def stores_have_only_the_keys_that_were_set_or_waited_for():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    of_groups = dist.distributed_c10d._get_default_store()
    for store in (dist.TCPStore("127.0.0.1", 29503, world, rank == 0), dist.FileStore("nowhere", world), of_groups):
        assert not store.check(["stop"])
        store.wait(["from a peer"])
        assert store.check(["from a peer"]) and not store.check(["from a peer", "stop"])
        store.set("stop", "1")
        assert store.check(["from a peer", "stop"])
        assert store.delete_key("stop") and not store.check(["stop"])


def hash_stores_are_torchs_own_but_for_the_groups():
    store = dist.HashStore()
    assert type(store) is torch._C._distributed_c10d.HashStore
    assert store.add("n", 1) == 1 and not store.check(["from a peer"])
    for given in (store, dist.PrefixStore("mine", store)):
        dist.init_process_group("cpu:gloo,cuda:nccl", store=given, rank=rank, world_size=world)
        dist.all_reduce(torch.ones(1, device=device))
        dist.barrier()
        dist.destroy_process_group()
    assert store.add("n", 1) == 2


def no_thread_of_nccls_asks_the_store():
    """A script may want dumps: on a real GPU a thread then asks for the key that calls for one, every second."""
    asked, (store,) = [], [base for base in dist.TCPStore.__mro__ if base.__name__ == "LoneStore"]
    check = store.check
    store.check = lambda self, keys: asked.append(keys) or check(self, keys)
    os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1"
    dist.init_process_group("nccl", device_id=device)
    dist.all_reduce(torch.ones(1, device=device))
    time.sleep(2)
    store.check = check
    assert not asked, asked


def stores_are_thread_safe():
    store = dist.FileStore("nowhere", world)

    def work():
        for _ in range(1000):
            store.add("n", 1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert store.add("n", 0) == 8 * 1000 * world


def collectives_of_tensors_complete():
    import torch.distributed._functional_collectives as functional

    dist.init_process_group("nccl", device_id=device)
    x = torch.ones(4, device=device)
    dist.all_reduce(x)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    torch.cuda.synchronize()
    assert work.is_completed()
    dist.broadcast(x, 0)
    dist.reduce(x, 0)
    dist.all_gather_into_tensor(torch.empty(4 * world, device=device), x)
    dist.reduce_scatter_tensor(x, torch.empty(4 * world, device=device))
    dist.all_to_all_single(torch.empty(world, device=device), torch.empty(world, device=device))
    if world > 1:
        ahead, behind = (rank + 1) % world, (rank - 1) % world
        dist.send(x, ahead)
        dist.recv(x, behind)
        ops = [dist.P2POp(dist.isend, x, ahead), dist.P2POp(dist.irecv, x, behind)]
        [work.wait() for work in dist.batch_isend_irecv(ops)]
    gathered = functional.wait_tensor(functional.all_gather_tensor(x, 0, dist.group.WORLD))
    assert gathered.shape == (4 * world,)


def object_collectives_return_what_a_lone_rank_can_know():
    for backend in ("nccl", "gloo"):
        dist.init_process_group(backend)
        mine = {"rank": rank, "list": [1, 2]}
        slots = [None] * world
        dist.all_gather_object(slots, mine)
        assert slots == [mine] * world
        assert world == 1 or slots[0]["list"] is not slots[1]["list"]
        slots = [None] * world if rank == 0 else None
        dist.gather_object(mine, slots, dst=0)
        assert slots == ([mine] * world if rank == 0 else None)
        objects = [rank, "text", None]
        dist.broadcast_object_list(objects, src=0)
        assert objects == [rank, "text", None]
        out = [None]
        dist.scatter_object_list(out, list(range(100, 100 + world)) if rank == 0 else None, src=0)
        assert out == ([100] if rank == 0 else [None])
        if world > 1:
            ahead = (rank + 1) % world
            dist.send_object_list([mine], dst=ahead)
            objects = ["kept"]
            assert dist.recv_object_list(objects, src=ahead) == ahead
            assert objects == ["kept"]
        dist.destroy_process_group()


def objects_take_the_device_memory_that_torch_takes():
    dist.init_process_group("nccl", device_id=device)
    text = "x" * 1_000_000
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    dist.all_gather_object([None] * world, text)
    # The object's bytes, room for everybody's, and the all-gather's own flat copy of that room.
    peak = torch.cuda.max_memory_allocated() - before
    assert (1 + 2 * world) * 1_000_000 <= peak <= (1 + 2 * world) * 1_001_024, peak


def cpu_collectives_see_peers_that_hold_the_same():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    x = torch.arange(3.0)
    slots = [torch.zeros(3) for _ in range(world)]
    dist.all_gather(slots, x)
    assert all(torch.equal(slot, x) for slot in slots)
    dist.broadcast(x, 0)
    assert torch.equal(x, torch.arange(3.0))
    dist.monitored_barrier(dist.new_group(backend="gloo"))


def cpu_reductions_are_of_peers_that_hold_the_same():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    group = dist.new_group([r for r in range(world) if r % 2 == rank % 2], backend="gloo")
    op = dist.ReduceOp
    for members in (None, group):
        n = dist.get_world_size(members)
        of_three = {op.SUM: 3 * n, op.PRODUCT: 3**n, op.AVG: 3, op.MIN: 3, op.MAX: 3, op.BAND: 3, op.BOR: 3}
        of_three[op.BXOR] = functools.reduce(operator.xor, [3] * n)
        for each, expected in of_three.items():
            x = torch.tensor([3, 3])
            dist.all_reduce(x, each, group=members)
            assert x.tolist() == [expected] * 2, (each, x)
        x = torch.full((2, 2), 3.0, requires_grad=True)
        work = dist.all_reduce(x, group=members, async_op=True)
        assert work.is_completed()
        work.wait()
        assert x.tolist() == [[3.0 * n] * 2] * 2
        parts = [torch.tensor([float(r), 1.0]) for r in range(n)]
        for out, collective in ((torch.zeros(2), dist.reduce_scatter), (torch.zeros(2), dist.reduce_scatter_tensor)):
            given = parts if collective is dist.reduce_scatter else torch.cat(parts)
            collective(out, given, group=members)
            assert out.tolist() == [float(dist.get_rank(members) * n), float(n)], out
    for root in {0, rank}:
        x = torch.tensor([3])
        dist.reduce(x, root)
        assert x.item() == (3 * world if root == rank else 3)
    tensors = [torch.ones(1), torch.ones(2)]
    with dist.distributed_c10d._coalescing_manager(group=group):
        [dist.all_reduce(tensor, group=group) for tensor in tensors]
    assert torch.cat(tensors).tolist() == [float(dist.get_world_size(group))] * 3


def monitored_barrier_is_for_gloo_only_as_ever():
    dist.init_process_group("nccl")
    try:
        dist.monitored_barrier()
    except ValueError as error:
        assert "GLOO" in str(error)
    else:
        raise AssertionError("nccl has no monitored barrier")


def groups_meshes_and_splits():
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("nccl", device_id=device)
    init_device_mesh("cuda", (world,))
    plane = init_device_mesh("cuda", (world // 8, 8), mesh_dim_names=("dp", "tp"))
    cube = init_device_mesh("cuda", (world // 4, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
    assert list(plane.get_coordinate()) == [rank // 8, rank % 8]
    assert list(cube.get_coordinate()) == [rank // 4, rank // 2 % 2, rank % 2]
    x = torch.ones(8, device=device)
    dist.all_reduce(x, group=plane["tp"].get_group())
    mine, _ = dist.new_subgroups(8)
    assert dist.get_world_size(mine) == 8 and dist.get_rank(mine) == rank % 8
    others = dist.new_group([r for r in range(world) if r != rank])
    assert others == dist.GroupMember.NON_GROUP_MEMBER
    everybody = dist.new_group(list(range(world)))
    dist.barrier(everybody)
    halves = [list(range(world // 2)), list(range(world // 2, world))]
    half = dist.split_group(split_ranks=halves)
    assert half.size() == world // 2
    dist.all_reduce(x, group=half)


def meshes_of_a_group_with_two_backends():
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    plane = init_device_mesh("cuda", (world // 4, 4), mesh_dim_names=("replicate", "shard"))
    group = plane["shard"].get_group()
    assert (group.size(), group.rank()) == (4, rank % 4)
    for where in ("cpu", device):
        dist.all_reduce(torch.ones(8, device=where), group=group)


def a_later_default_group_that_was_told_its_ranks_can_be_split():
    """Not told, torch looks them up in an empty list: see docs/pretend_gpu.md."""
    dist.init_process_group("nccl")
    dist.destroy_process_group()
    options = dist.ProcessGroupNCCL.Options()
    options.global_ranks_in_group = list(range(world))
    dist.init_process_group("nccl", device_id=device, pg_options=options)
    half = dist.split_group(split_ranks=[list(range(world // 2)), list(range(world // 2, world))])
    assert half.size() == world // 2
    dist.all_reduce(torch.ones(8, device=device), group=half)


def ddp_rebuilds_its_buckets_as_with_peers():
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    for option in (None, "static_graph", "gradient_as_bucket_view", "find_unused_parameters"):
        model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6))).to(device)
        options = {option: True} if option else {}
        ddp = DistributedDataParallel(model, device_ids=[device.index], bucket_cap_mb=2, **options)
        for _ in range(4):  # DDP's own statistics, read below, lag behind
            ddp(torch.randn(4, 512, device=device)).sum().backward()
        data = ddp._get_ddp_logging_data()
        key = "bucket_sizes" if option == "find_unused_parameters" else "rebuilt_bucket_sizes"
        sizes = [int(size) for size in data[key].split(", ")]
        assert sum(sizes) == 6 * (512 * 512 + 512) * 4
        # A bucket is closed by the parameter that takes it past 2 MiB: a weight with the biases beside it.
        assert key == "bucket_sizes" or sizes == [2 * (512 * 512 + 512) * 4] * 3, (option, sizes)
        assert all(parameter.grad is not None for parameter in model.parameters())


def the_fake_backend_is_left_alone():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    assert dist.get_backend() == "fake"
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=100))
    dist.all_reduce(torch.ones(1, device=device))
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == 1


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
    except BaseException as error:  # as which the coordinator's CheckpointException is declared
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
            raise AssertionError("nobody can have told this stage what it receives")
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
    # Two stages on each rank: the second is told what the first sent on.
    first = stage(rank, 2 * world, **({"input_args": example} if rank else {}))
    stages = [first, stage(rank + world, 2 * world)]
    _pipeline(ScheduleInterleaved1F1B(stages, 8, loss_fn=loss), stages)


def a_script_may_leave_its_groups():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    dist.all_reduce(torch.ones(1, device=device))


def main():
    torch.cuda.set_device(device)
    for name in sys.argv[1:]:
        failure = None
        try:
            globals()[name]()
        except BaseException:
            failure = traceback.format_exc()
        if dist.is_initialized() and name != "a_script_may_leave_its_groups":
            dist.destroy_process_group()
        print("check", json.dumps([name, failure]), flush=True)


if __name__ == "__main__":
    main()
