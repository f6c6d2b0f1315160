"""Claims of test_trackers_use.py about hooks: what the script's own get, what is raised, and what is left behind."""

import contextlib
import gc
import threading
import weakref

import torch
import torch.distributed._tools.mod_tracker
from claims import claim, main
from torch import nn
from trackers_training import mlp, raises, step

from plimsoll import MemTracker, ModTracker
from plimsoll.native import _C
from plimsoll.run.defects import Defects
from plimsoll.trackers.hooks import hooks


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
def gradients_of_leaves_that_were_asked_for_do_not_disturb():
    class Net(nn.Module):
        def forward(self, x, t):
            return (x * t).sin()

    ended = []
    for kind in (MemTracker, ModTracker):
        with kind() as tracker:
            if kind is ModTracker:
                tracker.register_user_hooks(post_bw_hook=lambda module, gradients: ended.append(len(gradients[0])))
            x, t = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
            u = Net()(x, t)
            first = torch.autograd.grad(u.sum(), [x, t], create_graph=True)
            torch.autograd.grad(first[0].sum(), [x], retain_graph=True)
            u.sum().backward()
            assert tracker.parents == {"Global"} if kind is ModTracker else tracker.parents() == {"Global"}
    assert ended and set(ended) == {2}


@claim
def a_module_tracker_may_be_entered_twice_and_not_left_more_often():
    seen, tracker = [], ModTracker()
    tracker.register_user_hooks(pre_fw_hook=lambda *_: seen.append(1))
    with tracker:
        with tracker:
            nn.Linear(4, 4)(torch.ones(2, 4))
        nn.Linear(4, 4)(torch.ones(2, 4))
    with ModTracker():
        nn.Linear(4, 4)(torch.ones(2, 4))
    assert len(seen) == 2
    raises(RuntimeError, "not entered", tracker.__exit__)
    raises(RuntimeError, "not entered", MemTracker().__exit__)


@claim
def a_tracker_that_was_left_too_often_still_works():
    tracker = MemTracker()
    raises(RuntimeError, "not entered", tracker.__exit__)
    model, optimizer, batch = mlp()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        step(model, optimizer, batch)
    assert tracker.memory_tracking[model].snapshots


@claim
def a_tracker_that_cannot_be_entered_leaves_nothing_behind():
    class Broken(MemTracker):
        def _watch(self, scope):
            super()._watch(scope)
            raise KeyError("on the way")

    tracker = Broken()
    raises(KeyError, "on the way", tracker.__enter__)
    assert not tracker._native.entered and not tracker._scopes
    assert not nn.modules.module._global_forward_hooks and not nn.modules.module._global_forward_pre_hooks


@claim
def a_tracker_that_its_own_hooks_know_is_collected():
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


@claim
def what_a_script_put_into_an_optimizer_stays():
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


@claim
def steps_of_several_threads_all_end():
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


@claim
def the_scripts_own_hooks_on_parameters_go_on():
    """Python and libtorch keep the hooks of a leaf in one place, and whoever comes second takes it."""
    model, _, batch = mlp()
    weight, calls = model[0].weight, []
    weight.register_hook(lambda gradient: gradient * 0)
    model[0].bias.register_post_accumulate_grad_hook(lambda bias: calls.append("before"))
    tracker = MemTracker()
    tracker.track_external(model)
    with tracker:
        later = weight.register_hook(lambda gradient: gradient + 1)
        model(batch).sum().backward()
        assert torch.equal(weight.grad, torch.ones_like(weight)) and calls == ["before"]
        assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Gradient"] == sum(p.grad.nbytes for p in model.parameters())
    later.remove()
    weight.grad = None
    model(batch).sum().backward()
    assert torch.equal(weight.grad, torch.zeros_like(weight)) and calls == ["before", "before"]


@claim
def leaves_that_modules_take_and_give_gather_no_hooks():
    class Position(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.ones(8))

        def forward(self, x):
            return self.table

    def hooks_of(*tensors):
        return [len(tensor._backward_hooks or ()) for tensor in tensors]

    module, leaf = Position(), torch.ones(8, requires_grad=True)
    tracker = MemTracker()
    with tracker:
        for _ in range(5):
            (module(leaf) * nn.Identity()(leaf)).sum().backward()
            # Of the leaf: where the backward of the two modules that took it ended. Of the parameter: what names its gradient.
            assert hooks_of(leaf, module.table) == [2, 1], hooks_of(leaf, module.table)
    assert hooks_of(leaf, module.table) == [0, 1], hooks_of(leaf, module.table)
    del tracker
    gc.collect()
    assert hooks_of(leaf, module.table) == [0, 0], hooks_of(leaf, module.table)


@claim
def keyword_arguments_end_a_modules_backward():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Keyword(), Keyword()

        def forward(self, x):
            return self.second(x=self.first(x=x))

    class Keyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, *, x):
            return self.inner(x)

    model, seen = Outer(), []
    with ModTracker() as tracker:
        tracker.register_user_hooks(
            post_bw_hook=lambda module, _: seen.append((tracker.get_known_fqn(module), set(tracker.parents)))
        )
        model(torch.ones(2, 8, requires_grad=True)).sum().backward()
    running = dict(seen)
    assert "Outer.second" not in running["Outer.first.inner"], running


@claim
def hooks_in_backward_get_what_torchs_get():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x, y):
            return self.inner(x) * y, x + y

    class Through(nn.Module):
        def forward(self, x, y):
            return x, 0

    class Within(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Through()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x, y):
            x, y = self.scale[0] * x, self.scale[1] * y
            return self.inner(x, y)[0] * y, y.exp()

    def seen_by(kind, model):
        torch.manual_seed(0)
        model, seen = model(), []

        def note(place):
            return lambda module, args: seen.append((place, type(module).__name__, plain(args)))

        with kind() as tracker:
            tracker.register_user_hooks(pre_bw_hook=note("pre"), post_bw_hook=note("post"))
            for needs_gradient in (True, False):
                inputs = (torch.ones(2, 4, requires_grad=needs_gradient), torch.ones(2, 4, requires_grad=needs_gradient))
                sum(output.sum() for output in model(*inputs)).backward()
        return sorted(seen, key=str)

    def plain(value):
        if isinstance(value, (tuple, list)):
            return type(value)(plain(one) for one in value)
        return value.tolist() if value is not None else None

    for model in (Two, Within):
        ours, theirs = seen_by(ModTracker, model), seen_by(torch.distributed._tools.mod_tracker.ModTracker, model)
        assert ours == theirs, (model, ours, theirs)


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
