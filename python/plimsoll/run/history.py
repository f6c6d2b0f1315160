"""The allocator's own history: switched on for us, shared with a script that uses it too.

What the allocator records is the union of what we and the script ask for. The script's snapshots are cut down to what it
asked for: no trace and no stacks where it did not switch them on, nothing from before it did.
"""

import inspect
import threading
import time
from typing import Any, Callable, Dict, List, Optional

Snapshot = Dict[str, Any]

# A context level includes those before it.
_CONTEXTS: List[Optional[str]] = [None, "state", "alloc", "all"]


class _Wanted:
    def __init__(self, enabled: Optional[str], context: Optional[str], stacks: str, max_entries: int) -> None:
        self.enabled = enabled
        self.context = context
        self.stacks = stacks
        self.max_entries = max_entries
        self.since_us = time.time_ns() // 1000


class History:
    """REQUIRES: CUDA is initialised when `start` is called."""

    def __init__(self, torch: Any, max_entries: int, context: str) -> None:
        self._torch = torch
        self._ours = _Wanted("all", context, "python", max_entries)
        self._users: Optional[_Wanted] = None
        self._inside = threading.local()
        self._record: Callable[..., Any] = torch.cuda.memory._record_memory_history
        self._can_clear = "clear_history" in inspect.signature(torch.cuda.memory._record_memory_history_impl).parameters
        self._original_snapshot: Callable[..., Snapshot] = torch._C._cuda_memorySnapshot
        self.started = False

    def install(self) -> None:
        c_module = self._torch._C
        original = c_module._cuda_record_memory_history
        legacy = c_module._cuda_record_memory_history_legacy
        snapshot = self._original_snapshot

        def record(enabled: Optional[str], *args: Any) -> Any:
            if getattr(self._inside, "ours", False) or not self.started:
                return original(enabled, *args)
            context, stacks, max_entries = (*args[:3], *("all", "all", 1 << 62)[len(args[:3]) :])
            self._users = _Wanted(enabled, context, stacks, max_entries) if enabled else None
            if enabled and context not in _CONTEXTS:
                return original(enabled, *args)  # torch's own complaint
            return original(*self._union(), *args[3:]) if enabled else self._apply()

        def record_legacy(enabled: bool, *args: Any) -> Any:
            if not self.started:
                return legacy(enabled, *args)
            with_trace = len(args) > 1 and args[1] > 1
            self._users = _Wanted("all" if with_trace else "state", "all", "python", 1 << 62) if enabled else None
            return self._apply()

        def users_snapshot(*args: Any) -> Snapshot:
            found = snapshot(*args)
            return self._cut_down(found) if self.started and not getattr(self._inside, "ours", False) else found

        c_module._cuda_record_memory_history = record
        c_module._cuda_record_memory_history_legacy = record_legacy
        c_module._cuda_memorySnapshot = users_snapshot

    def start(self) -> bool:
        """False where the allocator keeps no history (cudaMallocAsync, a pluggable one)."""
        try:
            self._apply()
        except RuntimeError:
            return False
        self.started = True
        return True

    def snapshot(self) -> Snapshot:
        # Through torch's own function: what the one below takes differs between versions.
        self._inside.ours = True
        try:
            return self._torch.cuda.memory._snapshot()
        finally:
            self._inside.ours = False

    @property
    def users_own(self) -> bool:
        """The script records for itself: its history must not be cleared."""
        return self._users is not None

    def clear(self) -> None:
        """REQUIRES: not users_own."""
        if self._can_clear:
            self._apply(clear_history=True)
        else:
            self._call_ours(None)
            self._apply()

    def _union(self) -> List[Any]:
        ours, users = self._ours, self._users
        if users is None:
            return [ours.enabled, ours.context, ours.stacks, ours.max_entries]
        context = max(ours.context, users.context, key=_CONTEXTS.index)
        stacks = "all" if users.stacks == "all" and users.context is not None else "python"
        return ["all", context, stacks, max(ours.max_entries, users.max_entries)]

    def _apply(self, **options: Any) -> None:
        enabled, context, stacks, max_entries = self._union()
        self._call_ours(enabled, context=context, stacks=stacks, max_entries=max_entries, **options)

    def _call_ours(self, enabled: Optional[str], **options: Any) -> None:
        self._inside.ours = True
        try:
            self._record(enabled, **options)
        finally:
            self._inside.ours = False

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
            [entry for entry in trace if entry.get("time_us", users.since_us) >= users.since_us][-users.max_entries :]
            for trace in traces
        ]
        if users.context not in ("alloc", "all"):
            for trace in snapshot["device_traces"]:
                for entry in trace:
                    entry.pop("frames", None)
        return snapshot
