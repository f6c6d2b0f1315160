"""The drop-in trackers and hooks in forward: their arguments, their results and their exceptions."""

import contextlib

import pytest
import torch
import torch.distributed._tools.mod_tracker
from plimsoll.native import _C
from plimsoll.run.observe.defects import Defects
from plimsoll.trackers.hooks import hooks
from small_training import mlp
from torch import nn

from plimsoll import MemTracker, ModTracker


class Product(nn.Module):
    """Takes a dictionary of tensors and a keyword, and returns a dictionary."""

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


def test_forward_hooks_get_the_same_arguments_as_torchs():
    torchs = seen_in_forward(torch.distributed._tools.mod_tracker.ModTracker)
    assert seen_in_forward(ModTracker) == torchs and len(torchs) == 4


class Stubborn(nn.Module):
    """Returns NotImplemented, which other code gives a meaning of its own."""

    def forward(self, x):
        return NotImplemented if x is None else x


def calls_of_all_kinds_of_modules(hooked, order):
    """The calls, results and errors that modules, the script's hooks and callers see, in order."""

    def say(what, result=None):
        return lambda *_: (order.append(what), result)[1]

    plain, own = Stubborn(), Stubborn()
    own.register_forward_pre_hook(say("own before"))
    own.register_forward_hook(say("own after", 7))
    global_hooks = []
    for turn in range(2):
        with hooked():
            order.append(plain(None) is NotImplemented)
            order.append((plain(1), own(2)))
            for module in (plain, own):
                try:
                    module(3, 4)
                except TypeError as error:
                    order.append(str(error))
            plain.forward = lambda x: x + 100  # An instance attribute wins over the method of the class.
            order.append(plain(5))
            del plain.forward
        global_hooks.append(nn.modules.module.register_module_forward_pre_hook(say("global before")))
        global_hooks.append(nn.modules.module.register_module_forward_hook(say("global after", 8)))
    for handle in global_hooks:
        handle.remove()
    return order


def test_modules_are_called_as_without_a_tracker():
    original = nn.Module._call_impl
    assert calls_of_all_kinds_of_modules(MemTracker, []) == calls_of_all_kinds_of_modules(contextlib.nullcontext, [])
    assert nn.Module._call_impl is original


def test_a_module_call_patched_by_other_code_stays():
    original, seen = nn.Module._call_impl, []
    with MemTracker():
        ours = nn.Module._call_impl

        def patched(module, *args, **kwargs):
            seen.append(type(module).__name__)
            return ours(module, *args, **kwargs)

        nn.Module._call_impl = patched
        Stubborn()(1)
    try:
        before = nn.modules.module.register_module_forward_pre_hook(lambda *_: seen.append("before"))
        after = nn.modules.module.register_module_forward_hook(lambda *_: seen.append("after"))
        Stubborn()(2)
        before.remove(), after.remove()
        assert nn.Module._call_impl is patched and seen == ["Stubborn", "Stubborn", "before", "after"]
    finally:
        nn.Module._call_impl = original


def test_user_hooks_of_another_kind_may_be_added_later():
    seen = []
    with ModTracker() as tracker:
        tracker.register_user_hooks(pre_fw_hook=lambda *_: seen.append("pre"))
        tracker.register_user_hooks(post_fw_hook=lambda *_: seen.append("post"))
        with pytest.raises(AssertionError, match="pre_fw_hook already"):
            tracker.register_user_hooks(pre_fw_hook=print)
        nn.Linear(4, 4)(torch.ones(2, 4))
        tracker.clear_user_hooks()
        nn.Linear(4, 4)(torch.ones(2, 4))
    assert seen == ["pre", "post"]


def test_exceptions_of_the_scripts_hooks_reach_the_script_if_our_hooks_are_guarded():
    def broken(*_):
        raise KeyError("of the script")

    defects = Defects()
    hooks.guard_with(defects)
    try:
        for kind in ("pre_fw_hook", "post_fw_hook"):
            with ModTracker() as tracker:
                tracker.register_user_hooks(**{kind: broken})
                with pytest.raises(KeyError, match="of the script"):
                    nn.Linear(4, 4)(torch.ones(2, 4))
    finally:
        hooks.guard_with(None)
    assert not defects.texts


def test_failures_of_our_hooks_become_defects_once_hooks_are_guarded():
    def broken():
        raise ValueError("broken")

    model, _, batch = mlp()
    defects = Defects()
    with MemTracker():
        _C.set_before_any_forward(broken)
        try:
            with pytest.raises(ValueError, match="broken"):
                model(batch)
            hooks.guard_with(defects)
            model(batch)
        finally:
            hooks.guard_with(None)
            _C.set_before_any_forward(None)
    assert defects.texts == ["before_forward: ValueError('broken')"], defects.texts
