"""Exceptions in a tracker's scope: they reach the script, and the scope leaves nothing patched."""

import contextlib
import gc
import re

import pytest
import torch
import torch.distributed as dist
import torch_patch_points
from small_training import step
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from plimsoll import FSDPMemTracker, MemTracker, ModTracker


class Breaking(nn.Module):
    """A checkpointed layer, a plain layer, and an exception in one place of a step."""

    def __init__(self, device):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 8, device=device), nn.Linear(8, 8, device=device)
        self.breaks = "nowhere"

    def forward(self, x):
        x = self.outer(checkpoint(self.inner, x, use_reentrant=False))
        self.fail_in("forward")
        if x.requires_grad:
            x.register_hook(lambda _: self.fail_in("backward"))
        return x

    def fail_in(self, place):
        if self.breaks == place:
            raise KeyError("broken")


def breaking(sharded):
    """Model, optimizer and batch of a training after its first step."""
    model = Breaking("cuda" if sharded else "cpu")
    if sharded:
        for part in (model.inner, model.outer, model):
            fully_shard(part)
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.register_step_pre_hook(lambda *_: model.fail_in("step"))
    batch = torch.ones(2, 8, device="cuda" if sharded else "cpu", requires_grad=True)
    step(model, optimizer, batch)
    return model, optimizer, batch


PATCHED = {"_CheckpointFrame.__init__", "CheckpointFunction.forward"}


PATCHED_IN_FSDP2 = {"FSDPParamGroup.unshard", "FSDPParamGroup.post_backward", "FSDPParam.all_gather_inputs", "FSDPState.init",
            "torch.distributed.fsdp._fully_shard._fsdp_collectives.torch"}  # fmt: skip


def check_scope_restores_everything(make, sharded, expected, hooked="parameter"):
    """Exception: until it is dropped, a memory tracker keeps one hook on each parameter, under FSDP2 on each unsharded one."""
    for place in ("nowhere", "forward", "backward", "step"):
        training = model, optimizer, _ = breaking(sharded)
        before = torch_patch_points.current(model, optimizer)
        tracker, within = make(model, optimizer), set()

        def tracked(scope=tracker, training=training, before=before, within=within):
            with scope:
                within.update(torch_patch_points.changed(before, torch_patch_points.current(*training[:2])))
                step(*training)

        def left(training=training, before=before):
            return [
                re.sub(r"\d+", "_", name)
                for name in torch_patch_points.changed(before, torch_patch_points.current(*training[:2]))
            ]

        model.breaks = place
        with contextlib.nullcontext() if place == "nowhere" else pytest.raises(KeyError, match="broken"):
            tracked()
        hooks_left = [f"{hooked} {name}._backward_hooks[_]" for name, _ in model.named_parameters()] if hooked else []
        assert left() == sorted(hooks_left), (place, left())
        assert within >= expected, expected - within
        assert any("_global_forward_hooks[" in name for name in within), within
        with tracker:
            assert tracker._native.parents() == {"Global"}, (place, tracker._native.parents())
        del tracker, tracked
        gc.collect()
        assert left() == [], (place, left())


def test_an_exception_leaves_nothing_patched():
    def registered(model, optimizer):
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        return tracker

    check_scope_restores_everything(registered, False, PATCHED)
    check_scope_restores_everything(lambda *_: ModTracker(), False, set(), hooked=None)


def test_an_exception_under_fsdp_leaves_nothing_patched():
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        expected = PATCHED | PATCHED_IN_FSDP2
        check_scope_restores_everything(FSDPMemTracker, True, expected, hooked="whole parameter")
    finally:
        dist.destroy_process_group()


def test_an_optimizer_step_that_raises_has_ended():
    class Broken(torch.optim.SGD):
        breaks = True

        def step(self, closure=None):
            if self.breaks:
                raise ArithmeticError("no step")
            return super().step(closure)

    model = nn.Linear(8, 8)
    optimizer = Broken(model.parameters(), lr=0.1, momentum=0.9)
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        model(torch.ones(2, 8)).sum().backward()
        with pytest.raises(ArithmeticError, match="no step"):
            optimizer.step()
        out = model(torch.ones(2, 8))
        kept = tracker.get_tracker_snapshot()[torch.device("cpu")]
        assert kept["Activation"] == out.nbytes, kept  # The forward notices that the step has ended.
        optimizer.breaks = False
        out.sum().backward()
        optimizer.step()
    assert "_init_group" not in vars(optimizer)


def test_the_forward_of_a_closure_runs_within_the_step():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    tracker = MemTracker()
    tracker.track_external(model, optimizer)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 8)).square().sum()
        loss.backward()
        return loss

    with tracker:
        optimizer.step(closure)
        optimizer.step(closure)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Optstate"] > 0


def test_an_interrupted_forward_has_ended():
    class Interrupted(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.fine = Interrupted(), nn.Linear(4, 4)

        def forward(self, x, breaks):
            try:
                return self.inner(x) if breaks else self.fine(x)
            except KeyboardInterrupt:
                return self.fine(x)

    model, tracker = Outer(), ModTracker()
    with tracker:
        model(torch.ones(2, 4), True)
        assert tracker.parents == {"Global"}, tracker.parents
        model(torch.ones(2, 4), False)
        assert tracker.parents == {"Global"}, tracker.parents
