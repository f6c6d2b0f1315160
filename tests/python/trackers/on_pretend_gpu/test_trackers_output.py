"""The text that the drop-in trackers print and the order of their states, compared with torch's in the same process."""

import pytest

pytest.importorskip("tabulate")

import contextlib
import functools
import io
import itertools

import torch
import torch.distributed as dist
from plimsoll.trackers import display
from plimsoll.trackers.ref_types import FSDPModState, FSDPRefType, MemRefType, ModState, OwnRefType
from torch import nn
from torch.distributed._composable import checkpoint as composable_checkpoint
from torch.distributed._tools import mem_tracker as torchs
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker as TorchsFSDPMemTracker
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from plimsoll import FSDPMemTracker, MemTracker

UNITS = ("B", "KiB", "MiB", "GiB")


def printed(function, *args, **kwargs):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        function(*args, **kwargs)
    return text.getvalue()


# -- text of invented snapshots ----------------------------------------------------------------------------------------------


def books(categories, number):
    """A device's book: from zero to wider than the widest title, with halves to round."""
    found = {category: (place * number * 1021) ** 3 for place, category in enumerate(categories)}
    return {**found, "Total": sum(found.values())}


def snapshots(categories):
    """Snapshots of no device, of one to four, and with an empty device."""
    devices = [torch.device(name) for name in ("cuda:0", "cpu", "meta", "cuda:11")]
    for count in range(len(devices) + 1):
        yield {device: books(categories, number) for number, device in enumerate(devices[:count], start=1)}
    yield {device: books(categories, number) for number, device in enumerate(devices)}


def test_snapshots_are_printed_as_torch_prints_them():
    for categories, units in itertools.product((MemRefType, FSDPRefType), UNITS):
        for snapshot in snapshots(categories):
            assert display.plain(snapshot, units) == printed(torchs._print_snapshot, snapshot, units)
            ours, theirs = display.table(snapshot, units), printed(torchs._print_snapshot_tabular, snapshot, units)
            assert ours == theirs, f"{units}\n{ours}\n{theirs}"


def test_states_are_printed_as_torch_prints_them():
    for (categories, kinds), units in itertools.product(((MemRefType, ModState), (FSDPRefType, FSDPModState)), UNITS):
        some = list(snapshots(categories))
        for count in range(len(kinds) + 1):
            # The number of calls grows with the place of the state, to more than nine.
            states = {kind: (some * 3)[place : 3 * place] for place, kind in enumerate(list(kinds)[:count])}
            assert display.states_plain(states, units) == printed(torchs._print_state_snapshots, states, units)
            ours, theirs = (
                display.states_table(states, units),
                printed(torchs._print_state_snapshots_tabular, states, units),
            )
            assert ours == theirs, f"{units}\n{ours}\n{theirs}"


def test_our_extra_categories_have_columns_before_the_total():
    first, second = torch.device("cpu"), torch.device("cuda:0")
    total = {first: {MemRefType.PARAM: 1, "Total": 1}}
    more = {second: {MemRefType.PARAM: 2, OwnRefType.WORKSPACE: 3, "mine": 4, "Total": 9}}
    lines = display.table({**total, **more}, "B").splitlines()
    assert [line.split() for line in (lines[1], *lines[3:5])] == [
        ["Device", "Parameter", "Workspace", "mine", "Total"],
        ["cpu", "1", "B", "1", "B"],
        ["cuda:0", "2", "B", "3", "B", "4", "B", "9", "B"],
    ]
    place = lines[1].index("Total")
    assert [line[place:] for line in lines[3:5]] == ["1 B", "9 B"]
    lines = display.states_table({ModState.PRE_FW: [total, more]}, "B").splitlines()
    place = lines[1].index("Total")
    assert [line[place:] for line in lines[3:5]] == ["1 B", "9 B"]


# -- text of real snapshots ------------------------------------------------------------------------------------------------


class Scale(nn.Module):
    """Multiplies without a matrix product: cuBLAS workspaces are a category that only our tracker has."""

    def __init__(self, width, *inner, device=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device=device))
        self.inner = nn.ModuleList(inner)

    def forward(self, x):
        x = (self.weight * x).sin()
        for block in self.inner:
            x = checkpoint(block, x, use_reentrant=False)
        return x


def blocks(width, device):
    """More than ten blocks, so that natural order differs from text order."""
    return nn.Sequential(*(Scale(width, Scale(width, device=device), device=device) for _ in range(11)))


def check_texts(tracker, devices):
    """Our methods print the same text as torch's methods called on the same tracker."""
    theirs = torchs.MemTracker
    assert {str(device) for device in tracker.get_tracker_snapshot("peak")} == devices
    for units, tabulate in itertools.product(UNITS, (False, True)):
        for kind in ("current", "peak"):
            ours = printed(tracker.display_snapshot, kind, units, tabulate)
            assert ours == printed(theirs.display_snapshot, tracker, kind, units, tabulate), ours
        for depth in (0, 1, 2, 4):
            ours = printed(tracker.display_modulewise_snapshots, depth, units, tabulate)
            assert bool(ours) == bool(depth)
            assert ours == printed(theirs.display_modulewise_snapshots, tracker, depth, units, tabulate), ours


def test_mem_tracker_prints_the_text_that_torchs_methods_print():
    for device, devices in (("cpu", {"cpu"}), ("cuda", {"cpu", "cuda:0"})):
        model, other = blocks(3000, device), torch.ones(5000)
        tracker = MemTracker()
        tracker.track_external(model, other)
        with tracker:
            for _ in range(2):
                model(torch.ones(4, 3000, device=device)).sum().backward()
        check_texts(tracker, devices)
        assert "Pre-Forward-AC # 1" in printed(tracker.display_modulewise_snapshots, 4, "B", True)


def join_group():
    if not dist.is_initialized():
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)


def sharded(model):
    join_group()
    for block in model:
        fully_shard(block)
    return fully_shard(model)


def test_fsdp_mem_tracker_prints_the_text_that_torchs_methods_print():
    model = sharded(blocks(3000, "cuda"))
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.ones(4, 3000, device="cuda")
    tracker = FSDPMemTracker(model, optimizer)
    tracker.track_inputs((batch,))
    with tracker:
        model(batch).sum().backward()
        optimizer.step()
    check_texts(tracker, {"cpu", "cuda:0"})


def test_freed_modules_are_not_printed():
    tracker = MemTracker()
    with tracker:
        model = nn.Linear(4, 4)
        model(torch.ones(1, 4))
    assert "Linear" in printed(tracker.display_modulewise_snapshots)
    del model
    assert printed(tracker.display_modulewise_snapshots) == ""


# -- the order of states -------------------------------------------------------------------------------------------------------


def wide(*inner):
    """The last part saves nothing for backward, so its backward starts and ends before any recomputation."""
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), *inner, Offset())


class Offset(nn.Module):
    def forward(self, x):
        return x + 1


class Checkpointed(nn.Module):
    """Blocks under checkpoint, or without it (`reentrant` is None)."""

    def __init__(self, reentrant, *blocks):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(blocks)
        self.reentrant = reentrant

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(block, x, use_reentrant=self.reentrant)
        return x


def states_of(tracker, run):
    with tracker:
        run()
    return {stats.mod_fqn: [state.value for state in stats.snapshots] for stats in tracker.memory_tracking.values()}


def both(build):
    """The states of the same modules in our MemTracker and in torch's."""
    batch = torch.ones(2, 4)
    for tracker in (MemTracker(), torchs.MemTracker()):
        model = build()
        yield states_of(tracker, lambda: model(batch).sum().backward())


def test_module_states_have_torchs_order():
    again = wide()
    for build in (lambda: Checkpointed(None, wide(), wide(nn.Tanh())), lambda: Checkpointed(None, again, again)):
        ours, theirs = both(build)
        assert ours == theirs and len(ours) > 5, (ours, theirs)


def test_module_states_have_torchs_order_under_reentrant_checkpoint():
    """For these modules torch's tracker has an end of backward without a start."""
    ours, theirs = both(lambda: Checkpointed(True, wide(), wide(nn.Tanh())))
    for name, states in theirs.items():
        expected = states if "Pre-Backward" in states else [state for state in states if state != "Post-Backward"]
        assert ours[name] == expected, (name, ours[name], states)
    assert sum("Post-Backward" in states for states in theirs.values()) > sum(
        "Post-Backward" in states for states in ours.values()
    )


def test_module_states_have_torchs_order_under_checkpoint():
    again = wide()
    for build in (lambda: Checkpointed(False, wide(), wide(nn.Tanh())), lambda: Checkpointed(False, again, again)):
        ours, theirs = both(build)
        assert ours == theirs, [(name, ours[name], states) for name, states in theirs.items() if ours[name] != states]


def both_under_fsdp(checkpointed):
    batch = torch.ones(2, 4, device="cuda")
    for kind in (FSDPMemTracker, TorchsFSDPMemTracker):
        model = nn.Sequential(nn.Linear(4, 4), *(wide() for _ in range(3))).cuda()
        for block in model[1:] if checkpointed else ():
            composable_checkpoint(block)
        model = sharded(model)
        yield states_of(kind(model), lambda: model(batch).sum().backward())


def test_fsdp_states_have_torchs_order():
    ours, theirs = both_under_fsdp(checkpointed=False)
    del ours["FSDPSequential"]  # torch's tracker does not report a root without parameters.
    assert ours == theirs and len(ours) == 4, (ours, theirs)


def test_fsdp_states_have_torchs_order_with_composable_checkpoint():
    ours, theirs = both_under_fsdp(checkpointed=True)
    del ours["FSDPSequential"]
    assert ours == theirs, [(name, ours[name], states) for name, states in theirs.items() if ours[name] != states]


class Chain(nn.ModuleList):
    order = ()

    def forward(self, x):
        return functools.reduce(lambda x, place: self[place](x), self.order, x)


def test_fsdp_calls_and_groups_have_the_entries_that_the_documentation_states():
    def counts(kind, order, group):
        model = Chain(nn.Linear(4, 4) for _ in range(3)).cuda()
        model.order = order
        join_group()
        fully_shard([model[place] for place in group])
        tracker, stages = kind(fully_shard(model)), ("Before Pre-Forward", "Peak Forward", "Before Pre-Backward")
        with tracker:
            model(torch.ones(2, 4, device="cuda")).sum().backward()
        found = {
            stats.mod_fqn: stats.snapshots for stats in tracker.memory_tracking.values() if stats.mod_fqn != "FSDPChain"
        }
        return {name: [len(states[stage]) for stage in stages] for name, states in found.items()}

    assert counts(FSDPMemTracker, (0, 0, 1, 2), (0,)) == {"FSDPChain.0": [2, 2, 2]}
    assert counts(TorchsFSDPMemTracker, (0, 0, 1, 2), (0,)) == {"FSDPChain.0": [1, 1, 2]}
    assert counts(FSDPMemTracker, (0, 1, 2), (0, 1)) == {"FSDPChain.0, FSDPChain.1": [2, 1, 1]}
    assert counts(TorchsFSDPMemTracker, (0, 1, 2), (0, 1)) == dict.fromkeys(("FSDPChain.0", "FSDPChain.1"), [1, 1, 2])
