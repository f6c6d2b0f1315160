"""Checks of lone_rank_checks.py: process groups are made, split and left."""

import datetime

import torch
import torch.distributed as dist
from lone_rank_place import device, rank, world


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
    """Without the ranks torch looks them up in an empty list: see docs/pretend_gpu.md."""
    dist.init_process_group("nccl")
    dist.destroy_process_group()
    options = dist.ProcessGroupNCCL.Options()
    options.global_ranks_in_group = list(range(world))
    dist.init_process_group("nccl", device_id=device, pg_options=options)
    half = dist.split_group(split_ranks=[list(range(world // 2)), list(range(world // 2, world))])
    assert half.size() == world // 2
    dist.all_reduce(torch.ones(8, device=device), group=half)


def the_fake_backend_is_left_alone():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    assert dist.get_backend() == "fake"
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=100))
    dist.all_reduce(torch.ones(1, device=device))
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == 1


def a_script_may_leave_its_groups():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    dist.all_reduce(torch.ones(1, device=device))
