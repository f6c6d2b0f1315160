"""Entering and leaving a drop-in tracker: how often, from which code, and what is left afterwards."""

import gc
import threading
import weakref

import pytest
import torch
from small_training import mlp, step
from torch import nn

from plimsoll import MemTracker, ModTracker


def test_a_mod_tracker_may_be_entered_twice_but_not_left_more_often():
    seen, tracker = [], ModTracker()
    tracker.register_user_hooks(pre_fw_hook=lambda *_: seen.append(1))
    with tracker:
        with tracker:
            nn.Linear(4, 4)(torch.ones(2, 4))
        nn.Linear(4, 4)(torch.ones(2, 4))
    with ModTracker():
        nn.Linear(4, 4)(torch.ones(2, 4))
    assert len(seen) == 2
    with pytest.raises(RuntimeError, match="not entered"):
        tracker.__exit__()
    with pytest.raises(RuntimeError, match="not entered"):
        MemTracker().__exit__()


def test_a_tracker_works_after_it_was_left_too_often():
    tracker = MemTracker()
    with pytest.raises(RuntimeError, match="not entered"):
        tracker.__exit__()
    model, optimizer, batch = mlp()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        step(model, optimizer, batch)
    assert tracker.memory_tracking[model].snapshots


def test_a_tracker_that_fails_to_enter_removes_its_hooks():
    class Broken(MemTracker):
        def _observe(self, scope):
            super()._observe(scope)
            raise KeyError("on the way")

    tracker = Broken()
    with pytest.raises(KeyError, match="on the way"):
        tracker.__enter__()
    assert not tracker._native.entered and not tracker._scopes
    assert not nn.modules.module._global_forward_hooks and not nn.modules.module._global_forward_pre_hooks


def test_a_tracker_that_its_own_hooks_refer_to_is_collected():
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)

    def make(held):
        tracker = ModTracker()
        tracker.register_user_hooks(pre_fw_hook=lambda module, _: (held, tracker.get_known_fqn(module)))
        with tracker:
            nn.Linear(4, 4)(torch.ones(2, 4))

    make(held)
    del held
    gc.collect()
    assert gone() is None


def test_an_attribute_that_a_script_sets_on_an_optimizer_stays():
    model, optimizer, batch = mlp()
    original, calls = optimizer._init_group, []

    def own(*args, **kwargs):
        calls.append(1)
        return original(*args, **kwargs)

    optimizer._init_group = own
    with MemTracker():
        step(model, optimizer, batch)
    assert optimizer._init_group is own and calls
    del optimizer._init_group
    with MemTracker():
        step(model, optimizer, batch)
    assert "_init_group" not in optimizer.__dict__


def test_optimizer_steps_of_several_threads_all_end():
    from plimsoll.trackers.hooks import _steps

    errors = []

    def train():
        try:
            model, optimizer, batch = mlp()
            for _ in range(20):
                step(model, optimizer, batch)
        except BaseException as error:
            errors.append(error)

    with MemTracker():
        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        assert _steps.open == []
