"""MemTracker: every byte by category, module and state."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn, optim
from torch._guards import active_fake_mode
from torch.distributed._tools.mem_tracker import _RefType, _State
from torch.utils._pytree import tree_flatten
from torch.utils.weak import WeakIdKeyDictionary

from plimsoll.native import _C
from plimsoll.trackers import display, fake
from plimsoll.trackers.hooks import hooks, see_cuda_when_initialized
from plimsoll.trackers.ref_types import MemRefType, ModState
from plimsoll.trackers.results import Explanation, LiveTensor
from plimsoll.trackers.snapshots import Snapshot, snapshot_from, states_from


class FSDPModMemStats:
    """The statistics of one FSDP module, of the latest step in which it ran: torch's `_FSDPModMemStats`."""

    def __init__(self, plain: Any, state_class: type[_State], ref_class: type[_RefType]) -> None:
        self.mod_fqn: str = plain["fqn"]
        self.local_peak = {torch.device(name): count for name, count in plain["local_peak"].items()}
        self.snapshots = states_from(plain, state_class, ref_class)


class ModMemStats(FSDPModMemStats):
    """The memory of one module in the latest step in which it ran: torch's `_ModMemStats`."""

    def __init__(self, plain: Any, ref_class: type[_RefType]) -> None:
        super().__init__(plain, ModState, ref_class)
        self.parameter_mem: int = plain["parameter_mem"]
        self.buffer_mem: int = plain["buffer_mem"]
        self.input_mem: int = plain["input_mem"]
        self.output_mem: int = plain["output_mem"]


class MemTracker:
    """The memory of tensors that are made while the tracker is entered, by category and module.

    A drop-in for ``torch.distributed._tools.mem_tracker.MemTracker``: change only the import. It counts memory as the
    allocators do, on every thread, temporaries in operators included. So the total of a GPU is the caching allocator's
    ``active_bytes``, to the byte. It works with CPU tensors, on a GPU, on a pretend GPU (``plimsoll run``), under
    ``FakeTensorMode`` and on meta.

    The number of steps is not limited; of a module the tracker keeps the latest step in which it ran.

    >>> import torch
    >>> from plimsoll import MemTracker
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    >>> optimizer = torch.optim.AdamW(model.parameters())
    >>> batch = torch.randn(32, 64)
    >>> tracker = MemTracker()
    >>> tracker.track_external(model, optimizer, batch)
    >>> with tracker:
    ...     for _ in range(2):
    ...         model(batch).sum().backward()
    ...         optimizer.step()
    ...         optimizer.zero_grad()
    >>> peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]
    >>> peak["Total"] == sum(bytes for category, bytes in peak.items() if category != "Total")
    True
    >>> tracker.explain().causes[0].category
    'Optstate'
    """

    _ref_class: type[_RefType] = MemRefType
    _state_class: type[_State] = ModState

    def __init__(self) -> None:
        see_cuda_when_initialized()
        self._native = self._make_native()
        self._scopes: list[ExitStack] = []  # one per entry
        self._has_fakes = False

    def _make_native(self) -> "_C.Tracker":
        return _C.Tracker()

    def track_external(self, *external: nn.Module | optim.Optimizer | torch.Tensor) -> None:
        """Registers objects that exist already: modules (parameters, buffers, gradients), optimizers (their state), tensors
        (``Other``), and structures of these. Call it before the tracker is entered."""
        for thing in tree_flatten(external)[0]:
            if isinstance(thing, torch.Tensor):
                self._note_fakes([thing])
                self._native.track_tensor(thing)
            elif isinstance(thing, nn.Module):
                self._note_fakes([*thing.parameters(), *thing.buffers()])
                self._native.track_module(thing)
            elif isinstance(thing, optim.Optimizer):
                self._note_fakes([value for state in thing.state.values() for value in state.values()])
                self._native.track_optimizer(thing)
            elif thing is not None:
                raise TypeError(
                    f"track_external was given a {type(thing).__name__}, which has no memory to track: it takes modules, "
                    "optimizers and tensors, and structures of these"
                )

    def categorise(self, tensor: torch.Tensor, category: str) -> None:
        """Gives the tensor's memory a category of yours, for the life of the memory."""
        self._native.categorise(tensor, category)

    def _note_fakes(self, things: list[Any]) -> None:
        for thing in things:
            if isinstance(thing, torch.Tensor):
                for tensor in (thing, thing.grad if thing.is_leaf else None):
                    if tensor is not None and fake.is_fake(tensor):
                        self._has_fakes = True
                        fake.note(tensor)

    def __enter__(self) -> "MemTracker":
        with ExitStack() as scope:  # If an entry fails, the earlier ones are undone.
            self._native.enter()
            scope.callback(self._native.leave)
            if not self._scopes:
                self._observe(scope)
                if self._has_fakes or active_fake_mode() is not None:
                    scope.enter_context(fake.FakeMemory())
            self._scopes.append(scope.pop_all())
        return self

    def __exit__(self, *args: Any) -> None:
        if not self._scopes:
            raise RuntimeError("the tracker was exited, but it is not entered")
        self._scopes.pop().close()

    def _observe(self, scope: ExitStack) -> None:
        """Observes until the scope ends."""
        scope.callback(fake.MemorylessWatch(self._native).close)
        hooks.acquire()
        scope.callback(hooks.release)

    @property
    def memory_tracking(self) -> WeakIdKeyDictionary:
        """The statistics of each module, by module."""
        tracking = WeakIdKeyDictionary()
        for plain in MemTracker._shown_modules(self):
            tracking[plain["module"]] = ModMemStats(plain, self._ref_class)
        return tracking

    def get_tracker_snapshot(self, type: str = "current") -> Snapshot:
        """The bytes by category now (``"current"``) or at the peak since the tracker was entered (``"peak"``, each device at
        its own instant): ``{device: {category: bytes, "Total": bytes}}``."""
        if type not in ("current", "peak"):
            raise ValueError(f"unknown type of snapshot {type!r}: use 'current' or 'peak'")
        return snapshot_from(self._native.snapshot(type == "peak"), self._ref_class)

    def alive_at_peak(self, device: torch.device | str | None = None) -> list[LiveTensor]:
        """The live allocations at the peak of the device (by default the one with the highest peak), largest first."""
        return [LiveTensor(**plain) for plain in self._native.alive_at_peak(self._device_name(device))]

    def explain(self) -> Explanation:
        """The causes of the peak, which sum to it to the byte."""
        return Explanation.from_plain(self._native.explain(self._device_name(None)))

    def step_peaks(self) -> dict[int, Snapshot]:
        """The peak of each step. A step begins with the first forward after an optimizer step."""
        return {step: snapshot_from(plain, self._ref_class) for step, plain in self._native.step_peaks()}

    def phase_peaks(self) -> dict[str, Snapshot]:
        """The peaks of the latest step by phase: ``forward``, ``backward``, ``optimizer``, ``other``."""
        return {phase: snapshot_from(plain, self._ref_class) for phase, plain in self._native.phase_peaks().items()}

    def parents(self) -> set[str]:
        """The names of the modules that run now, and always ``Global``."""
        return set(self._native.parents())

    def _device_name(self, device: torch.device | str | None) -> str:
        if device is not None:
            return str(device)
        totals: list[tuple[int, str]] = [(plain["Total"], name) for name, plain in self._native.snapshot(True).items()]
        if not totals:
            raise RuntimeError("the tracker has seen no memory yet: run a step while it is entered")
        return max(totals)[1]

    def display_snapshot(self, type: str = "current", units: str = "B", tabulate: bool = False) -> None:
        """Prints a snapshot, in ``B``, ``KiB``, ``MiB`` or ``GiB``."""
        snapshot = self.get_tracker_snapshot(type)
        print((display.table if tabulate else display.plain)(snapshot, units), end="")

    def display_modulewise_snapshots(self, depth: int = 2, units: str = "B", tabulate: bool = False) -> None:
        """Prints the snapshots of modules with a path of at most ``depth`` parts."""
        display.divisor_of(units)
        render = display.states_table if tabulate else display.states_plain
        shown = self._shown_modules()
        for index in _C.natural_order([plain["fqn"] for plain in shown]):
            fqn = shown[index]["fqn"]
            if fqn.count(".") + 1 <= depth:
                snapshots = states_from(shown[index], self._state_class, self._ref_class)
                print(f"Module:  {fqn}\n{render(snapshots, units)}", end="")

    def _shown_modules(self) -> list[dict[str, Any]]:
        return [plain for plain in self._native.module_stats() if plain["module"] is not None]

    def reset_mod_stats(self) -> None:
        """Forgets the modules' snapshots."""
        self._native.reset_mod_stats()
