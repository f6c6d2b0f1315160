"""Checks of lone_rank_checks.py: rendezvous and stores."""

import os
import threading
import time

import torch
import torch.distributed as dist
from lone_rank_place import device, rank, world


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
    """A script may request dumps: on a real GPU a thread then reads the key that requests one, each second."""
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
