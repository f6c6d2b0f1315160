"""Claims of test_trackers_use.py about hooks in forward: what modules and the script's own get, and what is raised."""

import contextlib

import torch
import torch.distributed._tools.mod_tracker
from claims import claim, main
from plimsoll.native import _C
from plimsoll.run.observe.defects import Defects
from plimsoll.trackers.hooks import hooks
from small_training import mlp, raises
from torch import nn

from plimsoll import MemTracker, ModTracker


class Product(nn.Module):
    """Of tensors, in a structure, by a keyword; and what it gives is no plain tensor either."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, pair, *, scale=1.0):
        return {"product": self.inner(pair["x"]) * pair["y"] * scale}


def seen_in_forward(kind):
    model, seen = Product(), []

    def form(value):
        if isinstance(value, torch.Tensor):
            return tuple(value.shape)
        if isinstance(value, dict):
            return {key: form(one) for key, one in value.items()}
        return type(value)(form(one) for one in value) if isinstance(value, (tuple, list)) else value

    with kind() as tracker:
        tracker.register_user_hooks(
            pre_fw_hook=lambda module, given: seen.append((type(module).__name__, form(given))),
            post_fw_hook=lambda module, given, result: seen.append((type(module).__name__, form(given), form(result))),
        )
        model({"x": torch.ones(2, 4), "y": torch.ones(2, 4)}, scale=torch.ones(()))
    return seen


@claim
def hooks_in_forward_get_what_torchs_get():
    torchs = seen_in_forward(torch.distributed._tools.mod_tracker.ModTracker)
    assert seen_in_forward(ModTracker) == torchs and len(torchs) == 4


class Stubborn(nn.Module):
    """What it gives means something else to others."""

    def forward(self, x):
        return NotImplemented if x is None else x


def calls_of_all_kinds_of_modules(hooked, order):
    """What the modules, the script's own hooks and the callers see, one after the other."""

    def say(what, result=None):
        return lambda *_: (order.append(what), result)[1]

    plain, own = Stubborn(), Stubborn()
    own.register_forward_pre_hook(say("own before"))
    own.register_forward_hook(say("own after", 7))
    everybodys = []
    for turn in range(2):
        with hooked():
            order.append(plain(None) is NotImplemented)
            order.append((plain(1), own(2)))
            for module in (plain, own):
                try:
                    module(3, 4)
                except TypeError as error:
                    order.append(str(error))
            plain.forward = lambda x: x + 100  # An attribute of its own comes before the class's.
            order.append(plain(5))
            del plain.forward
        everybodys.append(nn.modules.module.register_module_forward_pre_hook(say("everybody's before")))
        everybodys.append(nn.modules.module.register_module_forward_hook(say("everybody's after", 8)))
    for handle in everybodys:
        handle.remove()
    return order


@claim
def modules_are_called_as_without_us():
    original = nn.Module._call_impl
    assert calls_of_all_kinds_of_modules(MemTracker, []) == calls_of_all_kinds_of_modules(contextlib.nullcontext, [])
    assert nn.Module._call_impl is original


@claim
def another_who_calls_modules_in_his_way_stays():
    original, seen = nn.Module._call_impl, []
    with MemTracker():
        ours = nn.Module._call_impl

        def anothers(module, *args, **kwargs):
            seen.append(type(module).__name__)
            return ours(module, *args, **kwargs)

        nn.Module._call_impl = anothers
        Stubborn()(1)
    try:
        before = nn.modules.module.register_module_forward_pre_hook(lambda *_: seen.append("before"))
        after = nn.modules.module.register_module_forward_hook(lambda *_: seen.append("after"))
        Stubborn()(2)
        before.remove(), after.remove()
        assert nn.Module._call_impl is anothers and seen == ["Stubborn", "Stubborn", "before", "after"]
    finally:
        nn.Module._call_impl = original


@claim
def hooks_of_other_kinds_may_come_later():
    seen = []
    with ModTracker() as tracker:
        tracker.register_user_hooks(pre_fw_hook=lambda *_: seen.append("pre"))
        tracker.register_user_hooks(post_fw_hook=lambda *_: seen.append("post"))
        raises(AssertionError, "pre_fw_hook already", tracker.register_user_hooks, pre_fw_hook=print)
        nn.Linear(4, 4)(torch.ones(2, 4))
        tracker.clear_user_hooks()
        nn.Linear(4, 4)(torch.ones(2, 4))
    assert seen == ["pre", "post"]


@claim
def what_the_scripts_own_hook_raises_reaches_the_script_also_where_ours_are_guarded():
    def broken(*_):
        raise KeyError("of the script")

    defects = Defects()
    hooks.guard_with(defects)
    try:
        for kind in ("pre_fw_hook", "post_fw_hook"):
            with ModTracker() as tracker:
                tracker.register_user_hooks(**{kind: broken})
                raises(KeyError, "of the script", nn.Linear(4, 4), torch.ones(2, 4))
    finally:
        hooks.guard_with(None)
    assert not defects.texts


@claim
def hooks_that_fail_are_told_as_soon_as_somebody_listens():
    def broken():
        raise ValueError("broken")

    model, _, batch = mlp()
    defects = Defects()
    with MemTracker():
        _C.set_before_any_forward(broken)
        try:
            raises(ValueError, "broken", model, batch)
            hooks.guard_with(defects)
            model(batch)
        finally:
            hooks.guard_with(None)
            _C.set_before_any_forward(None)
    assert defects.texts == ["before_forward: ValueError('broken')"], defects.texts


if __name__ == "__main__":
    main()
