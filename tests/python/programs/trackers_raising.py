"""Claims of test_trackers_use.py about what is raised in a tracker's scope, and what the scope leaves behind."""

import gc
import re

import torch
import torch.distributed as dist
import torch_patch_points
from claims import claim, main
from small_training import raises, step
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from plimsoll import FSDPMemTracker, MemTracker, ModTracker


class Breaking(nn.Module):
    """A checkpointed layer and a plain one, and an exception in one place of a step."""

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
    """(a training that is under way, its optimizer's step included)."""
    model = Breaking("cuda" if sharded else "cpu")
    if sharded:
        for part in (model.inner, model.outer, model):
            fully_shard(part)
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.register_step_pre_hook(lambda *_: model.fail_in("step"))
    batch = torch.ones(2, 8, device="cuda" if sharded else "cpu", requires_grad=True)
    step(model, optimizer, batch)
    return model, optimizer, batch


EXCHANGED = {"_CheckpointFrame.__init__", "CheckpointFunction.forward"}


OF_FSDP2 = {"FSDPParamGroup.unshard", "FSDPParamGroup.post_backward", "FSDPParam.all_gather_inputs", "FSDPState.init",
            "torch.distributed.fsdp._fully_shard._fsdp_collectives.torch"}  # fmt: skip


def a_scope_leaves_all_as_it_was(make, sharded, expected, hooked="parameter"):
    """But that a tracker of memory names gradients by one hook on each parameter, under FSDP2 on whole ones, until it is dropped."""
    for place in ("nowhere", "forward", "backward", "step"):
        training = model, optimizer, _ = breaking(sharded)
        before = torch_patch_points.there_is(model, optimizer)
        tracker, within = make(model, optimizer), set()

        def tracked(scope=tracker, training=training, before=before, within=within):
            with scope:
                within.update(torch_patch_points.changed(before, torch_patch_points.there_is(*training[:2])))
                step(*training)

        def left(training=training, before=before):
            return [
                re.sub(r"\d+", "_", name)
                for name in torch_patch_points.changed(before, torch_patch_points.there_is(*training[:2]))
            ]

        model.breaks = place
        tracked() if place == "nowhere" else raises(KeyError, "broken", tracked)
        hooks_left = [f"{hooked} {name}._backward_hooks[_]" for name, _ in model.named_parameters()] if hooked else []
        assert left() == sorted(hooks_left), (place, left())
        assert within >= expected, expected - within
        assert any("_global_forward_hooks[" in name for name in within), within
        with tracker:
            assert tracker._native.parents() == {"Global"}, (place, tracker._native.parents())
        del tracker, tracked
        gc.collect()
        assert left() == [], (place, left())


@claim
def an_exception_passes_and_leaves_nothing_behind():
    def registered(model, optimizer):
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        return tracker

    a_scope_leaves_all_as_it_was(registered, False, EXCHANGED)
    a_scope_leaves_all_as_it_was(lambda *_: ModTracker(), False, set(), hooked=None)


@claim
def an_exception_under_fsdp_passes_and_leaves_nothing_behind():
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        expected = EXCHANGED | OF_FSDP2
        a_scope_leaves_all_as_it_was(FSDPMemTracker, True, expected, hooked="whole parameter")
    finally:
        dist.destroy_process_group()


@claim
def a_step_that_raises_is_over():
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
        raises(ArithmeticError, "no step", optimizer.step)
        out = model(torch.ones(2, 8))
        kept = tracker.get_tracker_snapshot()[torch.device("cpu")]
        assert kept["Activation"] == out.nbytes, kept  # The step was found to be gone by the module's forward.
        optimizer.breaks = False
        out.sum().backward()
        optimizer.step()
    assert "_init_group" not in vars(optimizer)


@claim
def a_closure_runs_its_forward_within_the_step():
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


@claim
def an_interrupted_forward_is_over():
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


if __name__ == "__main__":
    main()
