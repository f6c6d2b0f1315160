"""Tensors without memory that are made while a tracker is entered, compared with torch's tracker in the same process."""

import torch
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
    """The tracker's report on device meta after run() in its scope: current, by module, and peak."""
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
    """`make` builds the arguments of `run` before the scope, once for each tracker."""
    ours, theirs = seen(MemTracker, run, *make()), seen(TorchsTracker, run, *make())
    for what, said in theirs.items():
        assert ours[what] == said, f"{what}: {ours[what]} but torch's reports {said}"
    assert theirs["most"] > 0
    assert not _get_current_dispatch_mode_stack()


def test_a_module_made_on_meta_in_the_scope_is_counted():
    check_same(lambda: nn.Linear(8, 8, device="meta")(batch()))


def test_training_on_meta_is_counted():
    def run():
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
        model(batch()).sum().backward()
        optimizer.step()
        return model, optimizer

    check_same(run)


def test_a_device_scope_of_meta_is_counted():
    def run():
        with torch.device("meta"):
            model = build(device=None)
            return model, model(torch.ones(2, 8)).sum().backward()

    check_same(run)


def test_a_model_made_before_the_scope_is_counted_when_it_runs():
    check_same(lambda model: model(batch()).sum().backward(), lambda: (build(),))


def test_a_model_called_with_keywords_only_is_counted():
    check_same(lambda model, inputs: model(input=inputs), lambda: (nn.Linear(8, 8, device="meta"), batch()))


def test_recomputation_on_meta_is_counted():
    def run():
        model, inputs = build(), batch().requires_grad_()
        checkpoint(model, inputs, use_reentrant=False).sum().backward()
        return model, inputs

    ours, theirs = seen(MemTracker, run), seen(TorchsTracker, run)
    for what in ("now", "most", "own"):
        assert ours[what] == theirs[what], f"{what}: {ours[what]} but torch's reports {theirs[what]}"


def test_fake_tensors_are_counted_after_their_mode_has_ended():
    def make():
        with FakeTensorMode():
            return nn.Linear(8, 8), torch.empty(2, 8)

    def said(kind):
        tracker, (model, inputs) = kind(), make()
        with tracker:
            kept = model(inputs)  # noqa: F841
            return tracker.get_tracker_snapshot()[torch.device("cpu")]["Parameter"]

    assert said(MemTracker) == said(TorchsTracker) == 4 * (64 + 8)


def test_no_dispatch_mode_is_entered_for_tensors_with_memory():
    """A mode slows every operator, so a model with memory on a GPU gets no mode."""
    with MemTracker():
        model = build("cuda")
        model(torch.ones(2, 8, device="cuda")).sum().backward()
        assert not looking()
        with FakeTensorMode():  # A mode of the script: torch's tracker ignores it too.
            nn.Linear(8, 8)(torch.empty(2, 8))
        assert not looking()


def test_the_dispatch_mode_ends_once_the_model_has_memory():
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


def test_a_dispatch_mode_of_the_script_ends_as_it_began():
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


def test_two_trackers_share_one_dispatch_mode():
    with MemTracker() as outer:
        with MemTracker() as inner:
            model = build()
            assert len(_get_current_dispatch_mode_stack()) == 1
            model(batch())
        model(batch())
        assert len(_get_current_dispatch_mode_stack()) == 1
    for tracker in (outer, inner):
        assert tracker.get_tracker_snapshot()[META]["Parameter"] == sum(p.nbytes for p in model.parameters())


def test_global_hooks_are_removed_with_the_scope():
    module = nn.modules.module
    lists = (
        module._global_forward_pre_hooks,
        module._global_parameter_registration_hooks,
        module._global_buffer_registration_hooks,
    )
    with MemTracker():
        assert all(lists)
    assert not any(lists)
