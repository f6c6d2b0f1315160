"""What the drop-in trackers print, and the forms of what they give, beside torch's own in the same process: claims
(test_trackers_forms.py)."""

import contextlib
import functools
import io
import itertools

import torch
import torch.distributed as dist
from claims import claim, main
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


# -- forms of made-up snapshots ----------------------------------------------------------------------------------------------


def books(categories, number):
    """Of a device: from nothing to more than the widest title, with halves that are rounded."""
    found = {category: (place * number * 1021) ** 3 for place, category in enumerate(categories)}
    return {**found, "Total": sum(found.values())}


def snapshots(categories):
    """Of no device, of one, of several, and with one that holds nothing."""
    devices = [torch.device(name) for name in ("cuda:0", "cpu", "meta", "cuda:11")]
    for count in range(len(devices) + 1):
        yield {device: books(categories, number) for number, device in enumerate(devices[:count], start=1)}
    yield {device: books(categories, number) for number, device in enumerate(devices)}


@claim
def snapshots_are_printed_as_torch_prints_them():
    for categories, units in itertools.product((MemRefType, FSDPRefType), UNITS):
        for snapshot in snapshots(categories):
            assert display.plain(snapshot, units) == printed(torchs._print_snapshot, snapshot, units)
            ours, theirs = display.table(snapshot, units), printed(torchs._print_snapshot_tabular, snapshot, units)
            assert ours == theirs, f"{units}\n{ours}\n{theirs}"


@claim
def states_are_printed_as_torch_prints_them():
    for (categories, kinds), units in itertools.product(((MemRefType, ModState), (FSDPRefType, FSDPModState)), UNITS):
        some = list(snapshots(categories))
        for count in range(len(kinds) + 1):
            # Of each state as many calls as its place among them, and more than nine of the later ones.
            states = {kind: (some * 3)[place : 3 * place] for place, kind in enumerate(list(kinds)[:count])}
            assert display.states_plain(states, units) == printed(torchs._print_state_snapshots, states, units)
            ours, theirs = (
                display.states_table(states, units),
                printed(torchs._print_state_snapshots_tabular, states, units),
            )
            assert ours == theirs, f"{units}\n{ours}\n{theirs}"


@claim
def what_only_ours_has_stands_under_its_title_before_the_total():
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


# -- forms of what trackers saw ------------------------------------------------------------------------------------------------


class Scale(nn.Module):
    """Of no matrix: what cuBLAS works in is a category of ours alone."""

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
    """More than ten, so that their order is not that of their names as text."""
    return nn.Sequential(*(Scale(width, Scale(width, device=device), device=device) for _ in range(11)))


def check_texts(tracker, devices):
    """What its methods print is what torch's methods print of the same tracker."""
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


@claim
def what_mem_tracker_shows_is_in_torchs_words():
    for device, devices in (("cpu", {"cpu"}), ("cuda", {"cpu", "cuda:0"})):
        model, other = blocks(3000, device), torch.ones(5000)
        tracker = MemTracker()
        tracker.track_external(model, other)
        with tracker:
            for _ in range(2):
                model(torch.ones(4, 3000, device=device)).sum().backward()
        check_texts(tracker, devices)
        assert "Pre-Forward-AC # 1" in printed(tracker.display_modulewise_snapshots, 4, "B", True)


def sharded(model):
    if not dist.is_initialized():
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    for block in model:
        fully_shard(block)
    return fully_shard(model)


@claim
def what_fsdp_mem_tracker_shows_is_in_torchs_words():
    model = sharded(blocks(3000, "cuda"))
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.ones(4, 3000, device="cuda")
    tracker = FSDPMemTracker(model, optimizer)
    tracker.track_inputs((batch,))
    with tracker:
        model(batch).sum().backward()
        optimizer.step()
    check_texts(tracker, {"cpu", "cuda:0"})


@claim
def modules_that_are_gone_are_not_shown():
    tracker = MemTracker()
    with tracker:
        model = nn.Linear(4, 4)
        model(torch.ones(1, 4))
    assert "Linear" in printed(tracker.display_modulewise_snapshots)
    del model
    assert printed(tracker.display_modulewise_snapshots) == ""


# -- the order of states -------------------------------------------------------------------------------------------------------


def wide(*inner):
    """A last part that keeps nothing for its backward, so that it begins before anything runs again, and ends as well."""
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), *inner, Offset())


class Offset(nn.Module):
    def forward(self, x):
        return x + 1


class Checkpointed(nn.Module):
    """Blocks that are run again, or not (`reentrant` is None)."""

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
    """What our MemTracker and torch's say of the states of the same modules."""
    batch = torch.ones(2, 4)
    for tracker in (MemTracker(), torchs.MemTracker()):
        model = build()
        yield states_of(tracker, lambda: model(batch).sum().backward())


@claim
def states_come_in_torchs_order():
    again = wide()
    for build in (lambda: Checkpointed(None, wide(), wide(nn.Tanh())), lambda: Checkpointed(None, again, again)):
        ours, theirs = both(build)
        assert ours == theirs and len(ours) > 5, (ours, theirs)


@claim
def states_come_in_torchs_order_where_a_reentrant_checkpoint_runs_modules_again():
    """Of these torch's has an end of a backward that nobody heard beginning."""
    ours, theirs = both(lambda: Checkpointed(True, wide(), wide(nn.Tanh())))
    for name, states in theirs.items():
        expected = states if "Pre-Backward" in states else [state for state in states if state != "Post-Backward"]
        assert ours[name] == expected, (name, ours[name], states)
    assert sum("Post-Backward" in states for states in theirs.values()) > sum(
        "Post-Backward" in states for states in ours.values()
    )


@claim
def states_come_in_torchs_order_where_a_checkpoint_runs_modules_again():
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


@claim
def states_of_fsdp_come_in_torchs_order():
    ours, theirs = both_under_fsdp(checkpointed=False)
    del ours["FSDPSequential"]  # Of a root without parameters torch's says nothing.
    assert ours == theirs and len(ours) == 4, (ours, theirs)


@claim
def states_of_fsdp_come_in_torchs_order_with_composable_checkpoints():
    ours, theirs = both_under_fsdp(checkpointed=True)
    del ours["FSDPSequential"]
    assert ours == theirs, [(name, ours[name], states) for name, states in theirs.items() if ours[name] != states]


class Chain(nn.ModuleList):
    order = ()

    def forward(self, x):
        return functools.reduce(lambda x, place: self[place](x), self.order, x)


@claim
def calls_and_groups_of_fsdp_are_entries_as_the_page_says():
    def counts(kind, order, group):
        model = Chain(nn.Linear(4, 4) for _ in range(3)).cuda()
        model.order = order
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


if __name__ == "__main__":
    main()
