"""Checks of lone_rank_checks.py: collectives of tensors and of objects, on the device and on the CPU."""

import functools
import operator

import torch
import torch.distributed as dist
from lone_rank_place import device, rank, world


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
    # The object's bytes, room for the objects of all ranks, and the all-gather's own flat copy of that room.
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
