"""The allocator's own history, which the observer shares with the script.

The allocator records the union of the requests of observer and script. The script's snapshots are reduced to its own request. The
allocator itself never skips or clears entries for the script, because the replay needs all of them.
"""

import collections
import contextlib
import inspect
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Snapshot = dict[str, Any]

# A context level includes those before it.
_CONTEXTS: list[str | None] = [None, "state", "alloc", "all"]


# While the script records, the history must not be cleared: the allocator keeps at least this number of entries.
_ENTRIES_BESIDE_USERS = 200_000


@dataclass(eq=False)
class _Recording:
    """The arguments of torch._C._cuda_record_memory_history in order. Older versions have fewer."""

    enabled: str | None
    context: str | None = "all"
    stacks: str = "all"
    max_entries: int = sys.maxsize
    clear_history: bool = False
    compile_context: bool = False
    global_record_annotations: bool = False
    skip_actions: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.since_us = _now_us()


def _now_us() -> int:
    return time.time_ns() // 1000


@contextlib.contextmanager
def _without_import_of_inductor(torch: Any) -> Iterator[None]:
    """A snapshot imports Inductor to find the frames of generated code, which takes a second. An Inductor that was not
    imported has not generated code."""
    if "torch._inductor" in sys.modules or "_inductor" in vars(torch):
        yield
        return
    stand_in = torch._inductor = types.ModuleType("torch._inductor")
    try:
        yield
    finally:
        if vars(torch).get("_inductor") is stand_in:  # Another thread may have imported Inductor.
            del torch._inductor


class History:
    """REQUIRES: CUDA is initialized when `start` is called."""

    def __init__(self, torch: Any, max_entries: int, context: str) -> None:
        self._torch = torch
        self._ours = _Recording("all", context, "python", max_entries)
        self._users: _Recording | None = None
        self._inside = threading.local()
        self._record: Callable[..., Any] = torch.cuda.memory._record_memory_history
        self._options = set(inspect.signature(torch.cuda.memory._record_memory_history_impl).parameters)
        self._original_snapshot: Callable[..., Snapshot] = torch._C._cuda_memorySnapshot
        # Begin and end of each snapshot of the observer.
        self._own_snapshots: collections.deque[tuple[int, int]] = collections.deque(maxlen=1000)
        self.started = False
        self.max_entries = 0  # the allocator's current limit
        self.on_script_records: Callable[[], None] = lambda: None  # called before the script's request takes effect

    def install(self) -> None:
        c_module = self._torch._C
        original = c_module._cuda_record_memory_history
        legacy = c_module._cuda_record_memory_history_legacy
        snapshot = self._original_snapshot

        def record(enabled: str | None, *args: Any) -> Any:
            if getattr(self._inside, "ours", False):
                return original(enabled, *args)
            wanted = _Recording(enabled, *args)
            if enabled not in (None, "state", "all") or wanted.context not in _CONTEXTS:
                return original(enabled, *args)  # torch raises its own error
            if not self.started:
                # CUDA is not initialized yet, or the allocator keeps no history and raises its own error.
                original(enabled, *args)
            self._set_script_request(wanted)

        def record_legacy(enabled: bool, *args: Any) -> Any:
            if not self.started:
                legacy(enabled, *args)
            entries = args[1] if len(args) > 1 else 1
            level = ("all" if entries > 1 else "state") if enabled else None
            self._set_script_request(_Recording(level, "all", "python", entries, *args[4:5]))

        def users_snapshot(*args: Any) -> Snapshot:
            with _without_import_of_inductor(self._torch):
                found = snapshot(*args)
            return self._cut_down(found) if self.started and not getattr(self._inside, "ours", False) else found

        c_module._cuda_record_memory_history = record
        c_module._cuda_record_memory_history_legacy = record_legacy
        c_module._cuda_memorySnapshot = users_snapshot

    def start(self) -> bool:
        """False if the allocator keeps no history (cudaMallocAsync, a pluggable allocator)."""
        try:
            self._apply()
        except RuntimeError:
            return False
        self.started = True
        return True

    def snapshot(self) -> Snapshot:
        # Calls the public function: the arguments of the C function differ between versions.
        self._inside.ours = True
        began = _now_us()
        try:
            return self._torch.cuda.memory._snapshot()
        finally:
            self._inside.ours = False
            self._own_snapshots.append((began, _now_us()))

    @property
    def script_records(self) -> bool:
        """True while the script records: the history must not be cleared."""
        return self._users is not None

    def clear(self) -> None:
        """REQUIRES: not script_records."""
        self.max_entries = 0
        if "clear_history" in self._options:
            self._apply(clear_history=True)
        else:
            self._call_ours(None)
            self._apply()

    def _set_script_request(self, wanted: _Recording) -> None:
        before = self._users
        if wanted.enabled is None:
            self._users = None
        else:
            if before is None and self.started:
                self.on_script_records()
                wanted.since_us = _now_us()
            elif before is not None and not wanted.clear_history:
                wanted.since_us = before.since_us
            self._users = wanted
        if self.started:
            self._apply()

    def _union(self) -> list[Any]:
        ours, users = self._ours, self._users
        if users is None:
            return [ours.enabled, ours.context, ours.stacks, ours.max_entries]
        context = max(ours.context, users.context, key=_CONTEXTS.index)
        stacks = "all" if users.stacks == "all" and users.context is not None else "python"
        return ["all", context, stacks, max(_ENTRIES_BESIDE_USERS, users.max_entries)]

    def _apply(self, **options: Any) -> None:
        enabled, context, stacks, max_entries = self._union()
        # A ring buffer with more entries than its new limit would be read in the wrong order.
        self.max_entries = max_entries = max(max_entries, self.max_entries)
        if self._users is not None:
            for name in {"compile_context", "global_record_annotations"} & self._options:
                options[name] = getattr(self._users, name)
        self._call_ours(enabled, context=context, stacks=stacks, max_entries=max_entries, **options)

    def _call_ours(self, enabled: str | None, **options: Any) -> None:
        self._inside.ours = True
        try:
            self._record(enabled, **options)
        finally:
            self._inside.ours = False

    def _is_users(self, entry: dict[str, Any], users: _Recording) -> bool:
        time_us = entry.get("time_us", users.since_us)
        if time_us < users.since_us or entry["action"] in users.skip_actions:
            return False
        # Each snapshot adds an entry: hide those of the observer.
        return entry["action"] != "snapshot" or not any(began <= time_us <= end for began, end in self._own_snapshots)

    def _cut_down(self, snapshot: Any) -> Any:
        if not isinstance(snapshot, dict):
            return snapshot
        users = self._users
        if users is None or users.context is None:
            for segment in snapshot["segments"]:
                segment["frames"] = []
                for block in segment["blocks"]:
                    block["frames"] = []
        traces = snapshot.get("device_traces")
        if traces is None:
            return snapshot
        if users is None or users.enabled != "all":
            snapshot["device_traces"] = [[] for _ in traces]
            return snapshot
        snapshot["device_traces"] = [
            [entry for entry in trace if self._is_users(entry, users)][-users.max_entries :] for trace in traces
        ]
        if users.context not in ("alloc", "all"):
            for trace in snapshot["device_traces"]:
                for entry in trace:
                    entry.pop("frames", None)
        return snapshot
