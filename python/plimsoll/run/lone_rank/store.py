"""Stores that answer for the peers that are not there.

torch's TCPStore, FileStore and HashStore wait: for workers to join, for a key to be set. Their replacements keep what
this process sets and never wait; a PrefixStore of torch's own around one of them works as before.

- ``get`` of a key that nobody set: where the key is one under which rank 0 publishes an NCCL id, an id; else ``b""``.
- ``add(key, n)``: the peers add the same, so a counter reaches the world size at once and no barrier that polls waits.
- ``wait`` returns, ``check`` says yes, except for the keys under which a rank announces a failure.
"""

import hashlib
import os
import re
import threading
from datetime import timedelta
from typing import Any, Dict, List, Optional, Union

from torch.distributed import Store

_NCCL_ID_BYTES = 128
# The last part of a key under which ProcessGroupNCCL shares an id: the communicator's number, the two ranks of a
# point-to-point communicator, or (several roots) a name with a number.
_NCCL_ID_KEY = re.compile(r"(?:^|/)(?:\d+|\d+:\d+|UniqueNCCLID:\d+)$")
# Keys that mean "something went wrong elsewhere" when they exist.
_FAILURE_KEY = re.compile(r"exception_dump|remote_error|nccl_comm_aborted|NCCLABORTEDCOMM", re.IGNORECASE)

# A store's Python half must outlive the C++ objects that hold its other half, background threads included.
_alive: List["LoneStore"] = []

Value = Union[str, bytes]


def _to_bytes(value: Value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _world_size_of_environment() -> int:
    try:
        return max(1, int(os.environ.get("WORLD_SIZE", "1")))
    except ValueError:
        return 1


class LoneStore(Store):
    """A key-value store with one member. Thread-safe; it never blocks."""

    def __init__(self, world_size: Optional[int] = None) -> None:
        super().__init__()
        self._values: Dict[str, bytes] = {}
        self._queues: Dict[str, List[bytes]] = {}
        self._lock = threading.RLock()
        self._world_size = world_size if world_size and world_size > 0 else _world_size_of_environment()
        _alive.append(self)

    def set(self, key: str, value: Value) -> None:
        with self._lock:
            self._values[key] = _to_bytes(value)

    def get(self, key: str) -> bytes:
        with self._lock:
            value = self._values.get(key)
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

    def check(self, keys: List[str]) -> bool:
        with self._lock:
            return all(key in self._values or not _FAILURE_KEY.search(key) for key in keys)

    def wait(self, keys: List[str], timeout: Optional[timedelta] = None) -> None:
        return None

    def barrier(self, *args: Any, **options: Any) -> None:
        return None

    def delete_key(self, key: str) -> bool:
        with self._lock:
            return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        with self._lock:
            return len(self._values)

    def list_keys(self) -> List[str]:
        with self._lock:
            return list(self._values)

    def multi_get(self, keys: List[str]) -> List[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: List[str], values: List[Value]) -> None:
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

    # The names under which C++ asks for the same.
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
    """In the place of torch.distributed.TCPStore: no socket, no server, no workers to wait for."""

    _DEFAULT_PORT = 29500  # what port 0, "any free one", is said to have become

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: Optional[int] = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: Optional[int] = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(world_size)
        self.host = host_name
        self.port = port or self._DEFAULT_PORT
        self.libuvBackend = use_libuv
        self.set_timeout(timeout)


class FileStore(LoneStore):
    """In the place of torch.distributed.FileStore: no file is made."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__(world_size)
        self.path = file_name


class HashStore(LoneStore):
    """In the place of torch.distributed.HashStore."""

    def __init__(self) -> None:
        super().__init__()


def replacements() -> Dict[str, Any]:
    return {"TCPStore": TCPStore, "FileStore": FileStore, "HashStore": HashStore}
