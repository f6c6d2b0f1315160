"""Tensors without memory that come up in the midst of a tracker's scope, beside torch's tracker in the same process: claims
(test_trackers_meta.py)."""

import torch
from claims import claim, main
from plimsoll.trackers import fake
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker as TorchsTracker
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

from plimsoll import MemTracker

META = torch.device("meta")


def build(device="meta"):
    return nn.Sequential(nn.Linear(8, 80, device=device), nn.ReLU(), nn.BatchNorm1d(80, device=device))


def batch():
    return torch.empty(2, 8, device="meta")


def looking():
    return any(isinstance(mode, fake.FakeMemory) for mode in _get_current_dispatch_mode_stack())


def seen(kind, run, *made):
    """What it says of meta after run() in its scope: now, of modules, and at most."""
    tracker = kind()
    with tracker:
        kept = run(*made)  # noqa: F841  (keeps the tensors alive until the snapshots are taken)
        now = tracker.get_tracker_snapshot()
    peak = tracker.get_tracker_snapshot("peak")
    states = {
        (stats.mod_fqn, state.value): [one.get(META) for one in calls]
        for stats in tracker.memory_tracking.values()
        for state, calls in stats.snapshots.items()
        if "Peak" not in state.value
    }
    own = {stats.mod_fqn: (stats.parameter_mem, stats.buffer_mem, stats.input_mem, stats.output_mem)
           for stats in tracker.memory_tracking.values()}  # fmt: skip
    return {"now": now.get(META), "most": peak.get(META, {}).get("Total"), "states": states, "own": own}


def check_same(run, make=tuple):
    """`make`: what is made before the scope, for each tracker anew."""
    ours, theirs = seen(MemTracker, run, *make()), seen(TorchsTracker, run, *make())
    for what, said in theirs.items():
        assert ours[what] == said, f"{what}: {ours[what]} where torch's has {said}"
    assert theirs["most"] > 0
    assert not _get_current_dispatch_mode_stack()


@claim
def a_module_that_is_made_on_meta_in_the_scope_is_seen():
    check_same(lambda: nn.Linear(8, 8, device="meta")(batch()))


@claim
def training_on_meta_is_seen():
    def run():
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
        model(batch()).sum().backward()
        optimizer.step()
        return model, optimizer

    check_same(run)


@claim
def a_device_scope_of_meta_is_seen():
    def run():
        with torch.device("meta"):
            model = build(device=None)
            return model, model(torch.ones(2, 8)).sum().backward()

    check_same(run)


@claim
def a_model_that_was_made_before_is_seen_when_it_runs():
    check_same(lambda model: model(batch()).sum().backward(), lambda: (build(),))


@claim
def keyword_arguments_alone_are_enough():
    check_same(lambda model, inputs: model(input=inputs), lambda: (nn.Linear(8, 8, device="meta"), batch()))


@claim
def recomputation_on_meta_is_seen():
    def run():
        model, inputs = build(), batch().requires_grad_()
        checkpoint(model, inputs, use_reentrant=False).sum().backward()
        return model, inputs

    ours, theirs = seen(MemTracker, run), seen(TorchsTracker, run)
    for what in ("now", "most", "own"):
        assert ours[what] == theirs[what], f"{what}: {ours[what]} where torch's has {theirs[what]}"


@claim
def fake_tensors_of_a_mode_that_is_over_are_seen():
    def make():
        with FakeTensorMode():
            return nn.Linear(8, 8), torch.empty(2, 8)

    def said(kind):
        tracker, (model, inputs) = kind(), make()
        with tracker:
            kept = model(inputs)  # noqa: F841
            return tracker.get_tracker_snapshot()[torch.device("cpu")]["Parameter"]

    assert said(MemTracker) == said(TorchsTracker) == 4 * (64 + 8)


@claim
def nothing_is_looked_at_without_a_reason():
    """Every operator would cost more: on a GPU, where models have memory, there is no mode."""
    with MemTracker():
        model = build("cuda")
        model(torch.ones(2, 8, device="cuda")).sum().backward()
        assert not looking()
        with FakeTensorMode():  # Another's: torch's tracker passes over it, too.
            nn.Linear(8, 8)(torch.empty(2, 8))
        assert not looking()


@claim
def a_model_that_is_trained_elsewhere_is_looked_at_until_then():
    with MemTracker() as tracker:
        model = build()
        assert looking()
        model.to_empty(device="cuda")
        model(torch.ones(2, 8, device="cuda")).sum().backward()
        assert not looking()
        build()(batch())
        assert looking()
        assert tracker.get_tracker_snapshot("peak")[META]["Total"] > 0
    assert not looking()


@claim
def a_mode_of_the_scripts_own_ends_as_it_began():
    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **kwargs or {})

    with MemTracker() as tracker:
        with Counting() as counting:
            model = build()
            model(batch())
            assert _get_current_dispatch_mode_stack() == [counting]
        assert counting.count and not _get_current_dispatch_mode_stack()
        model(batch())
        assert looking()
        assert tracker.get_tracker_snapshot()[META]["Parameter"] == sum(p.nbytes for p in model.parameters())


@claim
def two_trackers_look_once():
    with MemTracker() as outer:
        with MemTracker() as inner:
            model = build()
            assert len(_get_current_dispatch_mode_stack()) == 1
            model(batch())
        model(batch())
        assert len(_get_current_dispatch_mode_stack()) == 1
    for tracker in (outer, inner):
        assert tracker.get_tracker_snapshot()[META]["Parameter"] == sum(p.nbytes for p in model.parameters())


@claim
def hooks_are_gone_with_the_scope():
    module = nn.modules.module
    lists = (
        module._global_forward_pre_hooks,
        module._global_parameter_registration_hooks,
        module._global_buffer_registration_hooks,
    )
    with MemTracker():
        assert all(lists)
    assert not any(lists)


if __name__ == "__main__":
    main()
