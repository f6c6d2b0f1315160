"""torch.distributed alone in one process: any rank of any world size, never waiting for a peer."""

import textwrap

import pytest

RANKS = [(0, 1), (3, 8), (16383, 16384)]

SET_UP = """
import os
import torch
import torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
"""


@pytest.fixture
def lone(tmp_path, plimsoll_run):
    """Runs a script as the given rank and returns the run, having checked that it ended well."""

    def run(body, rank=0, world=8):
        script = tmp_path / "script.py"
        script.write_text(SET_UP + textwrap.dedent(body) + "\nprint('reached the end')\n")
        result = plimsoll_run("--world-size", str(world), "--rank", str(rank), str(script))
        assert result.code == 0, result.stderr
        assert "reached the end" in result.stdout
        return result

    return run


# Each run costs an import of torch: what can be tried in one process is.
@pytest.mark.parametrize("rank, world", RANKS)
def test_a_lone_rank_initialises_with_every_backend(lone, rank, world):
    lone(
        """
        for backend in ("nccl", "gloo", "cpu:gloo,cuda:nccl", None):
            dist.init_process_group(backend)
            assert (dist.get_rank(), dist.get_world_size()) == (rank, world)
            dist.barrier()
            dist.destroy_process_group()
            assert not dist.is_initialized()
        """,
        rank,
        world,
    )


def test_every_rendezvous_returns_at_once_and_makes_no_file(lone, tmp_path):
    made = tmp_path / "rendezvous"
    lone(
        f"""
        for where in ("env://", "tcp://127.0.0.1:29501", "file://{made}"):
            dist.init_process_group("nccl", init_method=where, rank=rank, world_size=world)
            dist.all_reduce(torch.ones(1, device=device))
            dist.destroy_process_group()
        """,
        rank=3,
    )
    assert not made.exists()


def test_a_store_of_the_script_does_not_wait(lone):
    lone(
        """
        tcp = dist.TCPStore("127.0.0.1", 29502, world, rank == 0)
        assert (tcp.host, tcp.port) == ("127.0.0.1", 29502)
        for inner in (tcp, dist.FileStore("nowhere", world), dist.HashStore()):
            store = dist.PrefixStore("mine", inner)
            store.set("key", "value")
            assert store.get("key") == b"value"
            assert store.get("from a peer") == b""
            assert store.multi_get(["key", "other"]) == [b"value", b""]
            store.wait(["from a peer"])
            assert store.check(["from a peer"])
            assert store.add("arrived", 1) == world == store.add("arrived", 0)
            assert store.compare_set("lock", "", "mine") == b"mine"
            assert store.compare_set("lock", "other", "yours") == b"mine"
            assert store.delete_key("key") and not store.delete_key("key")
            dist.init_process_group("nccl", store=store, rank=rank, world_size=world)
            dist.barrier()
            dist.destroy_process_group()
        """,
        rank=3,
    )


def test_stores_are_thread_safe(lone):
    lone(
        """
        import threading
        store = dist.HashStore()
        def work():
            for _ in range(1000):
                store.add("n", 1)
        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert store.add("n", 0) == 8 * 1000 * world
        """
    )


@pytest.mark.parametrize("rank, world", RANKS)
def test_collectives_of_tensors_complete(lone, rank, world):
    lone(
        """
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
        import torch.distributed._functional_collectives as functional
        gathered = functional.wait_tensor(functional.all_gather_tensor(x, 0, dist.group.WORLD))
        assert gathered.shape == (4 * world,)
        dist.destroy_process_group()
        """,
        rank,
        world,
    )


@pytest.mark.parametrize("rank, world", [(0, 1), (0, 8), (3, 8)])
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_object_collectives_return_what_a_lone_rank_can_know(lone, backend, rank, world):
    lone(
        f"""
        dist.init_process_group({backend!r})
        mine = {{"rank": rank, "list": [1, 2]}}
        slots = [None] * world
        dist.all_gather_object(slots, mine)
        assert slots == [mine] * world
        assert world == 1 or slots[0]["list"] is not slots[1]["list"]
        slots = [None] * world if rank == 0 else None
        dist.gather_object(mine, slots, dst=0)
        assert slots in (None, [mine] * world)
        objects = [rank, "text", None]
        dist.broadcast_object_list(objects, src=0)
        assert objects == [rank, "text", None]
        out = [None]
        dist.scatter_object_list(out, list(range(100, 100 + world)) if rank == 0 else None, src=0)
        assert out == ([100] if rank == 0 else [None])
        if world > 1:
            dist.send_object_list([mine], dst=(rank + 1) % world)
            objects = ["kept"]
            assert dist.recv_object_list(objects, src=(rank + 1) % world) == (rank + 1) % world
            assert objects == ["kept"]
        """,
        rank,
        world,
    )


def test_objects_take_the_device_memory_that_torch_takes(lone):
    lone(
        """
        dist.init_process_group("nccl", device_id=device)
        text = "x" * 1_000_000
        torch.cuda.reset_peak_memory_stats()
        dist.all_gather_object([None] * world, text)
        # The object's bytes, room for everybody's, and the all-gather's own flat copy of that room.
        assert torch.cuda.max_memory_allocated() >= (1 + 2 * world) * 1_000_000
        """
    )


def test_cpu_collectives_see_peers_that_hold_the_same(lone):
    lone(
        """
        dist.init_process_group("cpu:gloo,cuda:nccl")
        x = torch.arange(3.0)
        slots = [torch.zeros(3) for _ in range(world)]
        dist.all_gather(slots, x)
        assert all(torch.equal(slot, x) for slot in slots)
        work = dist.all_reduce(x, async_op=True)
        assert work.is_completed()
        work.wait()
        dist.broadcast(x, 0)
        assert torch.equal(x, torch.arange(3.0))
        dist.monitored_barrier(dist.new_group(backend="gloo"))
        """,
        rank=3,
    )


def test_monitored_barrier_is_for_gloo_only_as_ever(lone):
    lone(
        """
        dist.init_process_group("nccl")
        try:
            dist.monitored_barrier()
        except ValueError as error:
            assert "GLOO" in str(error)
        else:
            raise AssertionError("nccl has no monitored barrier")
        """
    )


@pytest.mark.parametrize("rank, world", RANKS[1:])
def test_groups_meshes_and_splits(lone, rank, world):
    lone(
        """
        from torch.distributed.device_mesh import init_device_mesh
        dist.init_process_group("nccl", device_id=device)
        line = init_device_mesh("cuda", (world,))
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
        dist.destroy_process_group()
        """,
        rank,
        world,
    )


@pytest.mark.parametrize(
    "options", ["", "static_graph=True", "gradient_as_bucket_view=True", "find_unused_parameters=True"]
)
def test_ddp_rebuilds_its_buckets_as_with_peers(lone, options):
    lone(
        f"""
        from torch.nn.parallel import DistributedDataParallel
        dist.init_process_group("nccl")
        model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6))).to(device)
        ddp = DistributedDataParallel(model, device_ids=[device.index], bucket_cap_mb=2, {options})
        for _ in range(4):  # DDP's own statistics, read below, lag behind
            ddp(torch.randn(4, 512, device=device)).sum().backward()
        data = ddp._get_ddp_logging_data()
        key = "bucket_sizes" if {options!r}.startswith("find_unused") else "rebuilt_bucket_sizes"
        sizes = [int(size) for size in data[key].split(", ")]
        assert sum(sizes) == 6 * (512 * 512 + 512) * 4
        # A bucket is closed by the parameter that takes it past 2 MiB: a weight with the biases beside it.
        assert key == "bucket_sizes" or sizes == [2 * (512 * 512 + 512) * 4] * 3, sizes
        assert all(parameter.grad is not None for parameter in model.parameters())
        """,
        rank=5,
        world=64,
    )


def test_the_fake_backend_is_left_alone(lone):
    lone(
        """
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
        assert dist.get_backend() == "fake"
        dist.all_reduce(torch.ones(1, device=device))
        """
    )


def test_a_script_that_never_destroys_its_groups_still_ends(lone):
    lone(
        """
        dist.init_process_group("cpu:gloo,cuda:nccl")
        dist.all_reduce(torch.ones(1, device=device))
        """,
        rank=5,
        world=64,
    )
