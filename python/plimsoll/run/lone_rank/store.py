"""Stores that answer for the absent peers.

torch's TCPStore and FileStore wait for workers to join and for keys to be set. Their replacements keep this process's values and
never wait; torch's PrefixStore works around them. A HashStore, which only this process can fill, stays torch's own. But if the
script passes it to ``init_process_group``, the groups use it through a store that does not wait.

- ``get`` of an unset key: an id if rank 0 publishes an NCCL id under such a key, else ``b""``.
- ``add(key, n)``: the peers add the same, so a counter reaches the world size at once and a barrier that polls ends.
- ``wait`` returns at once, as if the peer had set the key.
- ``check`` is true for a key that was set here, or that an earlier ``wait`` or ``get`` attributed to a peer. It is false
  otherwise: flags to stop, or for a failed rank, are not set.
"""

import hashlib
import inspect
import os
import re
import threading
from collections.abc import Iterator, MutableMapping
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed import PrefixStore, Store, distributed_c10d

from plimsoll.run.settings import number_in_environment
from plimsoll.wrapping import wrapper

_NCCL_ID_BYTES = 128
# The last part of a key under which ProcessGroupNCCL shares an id: the number of a communicator, two ranks (point to point),
# or a name with a number (several roots).
_NCCL_ID_KEY = re.compile(r"(?:^|/)(?:\d+|\d+:\d+|UniqueNCCLID:\d+)$")

# A store's Python half must outlive the C++ objects that hold its other half, background threads included.
_alive: list["LoneStore"] = []

Value = str | bytes


def _to_bytes(value: Value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class LoneStore(Store):
    """A key-value store with one member. Thread-safe; it never blocks."""

    def __init__(self, world_size: int | None = None, values: MutableMapping[str, bytes] | None = None) -> None:
        super().__init__()
        self._values: MutableMapping[str, bytes] = {} if values is None else values
        self._set_by_peers: set[str] = set()
        self._queues: dict[str, list[bytes]] = {}
        self._lock = threading.RLock()
        self._world_size = (
            world_size if world_size and world_size > 0 else max(1, number_in_environment("WORLD_SIZE", 1))
        )
        _alive.append(self)

    def set(self, key: str, value: Value) -> None:
        with self._lock:
            self._values[key] = _to_bytes(value)

    def get(self, key: str) -> bytes:
        with self._lock:
            value = self._values.get(key)
            if value is None:
                self._set_by_peers.add(key)
        return self._answer_for_peer(key) if value is None else value

    def _answer_for_peer(self, key: str) -> bytes:
        if not _NCCL_ID_KEY.search(key):
            return b""
        digest = hashlib.sha256(key.encode()).digest()
        return digest * (_NCCL_ID_BYTES // len(digest))

    def add(self, key: str, amount: int) -> int:
        with self._lock:
            total = int(self._values.get(key) or b"0") + amount * self._world_size
            self._values[key] = str(total).encode()
            return total

    def append(self, key: str, value: Value) -> None:
        with self._lock:
            self._values[key] = self._values.get(key, b"") + _to_bytes(value)

    def compare_set(self, key: str, expected: Value, desired: Value) -> bytes:
        with self._lock:
            expected, desired = _to_bytes(expected), _to_bytes(desired)
            if self._values.get(key, b"") == expected:
                self._values[key] = desired
                return desired
            return self._values.get(key, expected)

    def check(self, keys: list[str]) -> bool:
        with self._lock:
            return all(key in self._values or key in self._set_by_peers for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        with self._lock:
            self._set_by_peers.update(keys)

    def barrier(self, *args: Any, **options: Any) -> None:
        return None

    def delete_key(self, key: str) -> bool:
        with self._lock:
            is_from_peer = key in self._set_by_peers
            self._set_by_peers.discard(key)
            return self._values.pop(key, None) is not None or is_from_peer

    def num_keys(self) -> int:
        with self._lock:
            return len(self._values)

    def list_keys(self) -> list[str]:
        with self._lock:
            return list(self._values)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[Value]) -> None:
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value: Value) -> None:
        with self._lock:
            self._queues.setdefault(key, []).append(_to_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        with self._lock:
            queue = self._queues.get(key)
            return queue.pop(0) if queue else b""

    def queue_len(self, key: str) -> int:
        with self._lock:
            return len(self._queues.get(key, ()))

    def clone(self) -> "LoneStore":
        return self

    # The names that C++ uses.
    deleteKey = delete_key
    getNumKeys = num_keys
    compareSet = compare_set
    multiGet = multi_get
    multiSet = multi_set
    hasExtendedApi = has_extended_api
    queuePush = queue_push
    queuePop = queue_pop
    queueLen = queue_len
    listKeys = list_keys


class TCPStore(LoneStore):
    """Replaces torch.distributed.TCPStore, without a socket, a server or a wait for workers."""

    _DEFAULT_PORT = 29500  # reported for port 0, "any free port"

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(world_size)
        self.host = host_name
        self.port = port or self._DEFAULT_PORT
        self.libuvBackend = use_libuv
        self.set_timeout(timeout)


class FileStore(LoneStore):
    """Replaces torch.distributed.FileStore, without a file."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__(world_size)
        self.path = file_name


class _ValuesOf(MutableMapping[str, bytes]):
    """The values of one of torch's stores. Reads only keys that exist, because other reads would wait."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, key: str) -> bytes:
        if not self._store.check([key]):
            raise KeyError(key)
        return self._store.get(key)

    def __setitem__(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    def __delitem__(self, key: str) -> None:
        if not self._store.delete_key(key):
            raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.list_keys())

    def __len__(self) -> int:
        return self._store.num_keys()


def _without_waiting(store: Any, world_size: int) -> Any:
    """`store`, or its replacement if it is a HashStore, with prefixes or without."""
    inner = store
    while isinstance(inner, PrefixStore):
        inner = inner.underlying_store
    return LoneStore(world_size, _ValuesOf(store)) if isinstance(inner, dist.HashStore) else store


# The monitor and the dumps exist to find absent peers, and here all peers are absent. Their threads would also call the store
# after Python has ended. Set in init_process_group, because scripts (torchtitan) set these variables too.
_ENVIRONMENT = {
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
}


@wrapper
def _initialising(init_process_group: Any, *args: Any, **options: Any) -> None:
    given = inspect.signature(init_process_group).bind(*args, **options)
    if given.arguments.get("store") is not None:
        store, world_size = given.arguments["store"], given.arguments.get("world_size", -1)
        given.arguments["store"] = _without_waiting(store, world_size)
    os.environ.update(_ENVIRONMENT)
    init_process_group(*given.args, **given.kwargs)


def replacements() -> dict[str, Any]:
    return {
        "TCPStore": TCPStore,
        "FileStore": FileStore,
        "init_process_group": _initialising(distributed_c10d.init_process_group),
    }
