"""ModTracker's events in several scenarios, for test_trackers_upstream_cases.py and test_trackers_against_torch.py. Writes one JSON
object to standard output: {scenario: events in order}. tracker_choice.py selects the tracker."""

import gc
import json
import warnings

import torch
import tracker_choice
from torch import nn
from torch.utils.checkpoint import checkpoint

ModTracker = tracker_choice.load().ModTracker


class Watch:
    """Records the modules in which the tracker says that training is."""

    def __init__(self, tracker):
        self.tracker, self.seen = tracker, []

    def note(self, what):
        self.seen.append([what, sorted(self.tracker.parents), self.tracker.is_bw])

    def hook(self, what):
        def called(module, *_):
            name = None if module is None else self.tracker.get_known_fqn(module)
            self.seen.append([what, name, name in self.tracker.parents, self.tracker.is_bw])

        return called

    def hooks(self):
        return [self.hook(what) for what in ("pre_fw", "post_fw", "pre_bw", "post_bw")]


class Noting(nn.Module):
    """Takes and returns a mapping of tensors; records its forward, and its backward when the gradient passes."""

    def __init__(self, watch):
        super().__init__()
        self.watch = watch

    def forward(self, given):
        x = given["x"].relu_()
        self.watch.note("forward")
        x.register_hook(lambda grad: self.watch.note("backward"))
        return {"x": x @ x}


class Nested(nn.Module):
    def __init__(self, watch, again=False):
        super().__init__()
        self.plain = Noting(watch)
        self.named = nn.ModuleDict({"inner": Noting(watch)})
        self.listed = nn.ModuleList([Noting(watch)])
        self.again = again

    def forward(self, given):
        given = self.plain(self.listed[0](given))
        if self.again:
            given = self.listed[0](given)
        return self.named["inner"](given)


def run_nested(watch, model):
    x = torch.randn(10, 10, requires_grad=True).clone()
    model({"x": x})["x"].sum().backward()


def hierarchy():
    """Two passes through modules held in attributes, dictionaries and lists."""
    tracker = ModTracker()
    watch = Watch(tracker)
    model = Nested(watch)
    with tracker:
        run_nested(watch, model)
        run_nested(watch, model)
        watch.note("after")
    return watch.seen


def repeated():
    """A module that is called twice in a pass."""
    tracker = ModTracker()
    watch = Watch(tracker)
    model = Nested(watch, again=True)
    with tracker:
        run_nested(watch, model)
    return watch.seen


def one_within_itself():
    """A module that calls itself: it is a parent once, until its outer call ends."""

    class Counting(nn.Module):
        def __init__(self, watch):
            super().__init__()
            self.watch = watch

        def forward(self, x, times):
            self.watch.note(f"in {times}")
            if times:
                x = self(x, times - 1)
            self.watch.note(f"out {times}")
            return x * 2

    tracker = ModTracker()
    watch = Watch(tracker)
    with warnings.catch_warnings(record=True) as caught, tracker:
        warnings.simplefilter("always")
        Counting(watch)(torch.ones(2), 1)
    return [*watch.seen, ["warned", any("hierarchy" in str(warning.message) for warning in caught)]]


def two_roots():
    """Modules without a common parent, each named by its class."""
    tracker = ModTracker()
    watch = Watch(tracker)
    first, second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))
    tracker.register_user_hooks(*watch.hooks())
    with tracker:
        second(first(torch.ones(2, 4))).sum().backward()
    return watch.seen


def outside_of_backward():
    tracker = ModTracker()
    watch = Watch(tracker)
    model, stranger = nn.Linear(2, 2), nn.Linear(2, 2)
    with tracker:
        watch.note("before")
        loss = model(torch.ones(2, requires_grad=True)).sum()
        watch.note("between")
        loss.backward()
        watch.note("after")
    return [*watch.seen, [tracker.get_known_fqn(model), tracker.get_known_fqn(stranger)]]


class Relu(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 10)

    def forward(self, x):
        return self.linear(x).relu_()


def user_hooks():
    """Four hooks. A second set is refused until they are cleared. Without gradients of inputs, backward ends with the pass."""
    tracker = ModTracker()
    watch = Watch(tracker)
    model = Relu()
    tracker.register_user_hooks(*watch.hooks())
    with tracker:
        model(torch.rand(10, 10, requires_grad=True)).sum().backward()
        watch.note("without gradients of inputs")
        model(torch.rand(10, 10)).sum().backward()
    try:
        tracker.register_user_hooks(watch.hook("another"), None, None, None)
    except Exception as error:  # noqa: BLE001  the test compares its type
        watch.seen.append(["refused", type(error).__name__])
    tracker.clear_user_hooks()
    tracker.register_user_hooks(post_fw_hook=watch.hook("only"))
    with tracker:
        model(torch.rand(10, 10)).sum().backward()
    watch.note("left")
    model(torch.rand(10, 10)).sum().backward()
    return watch.seen


def module_that_is_gone():
    """The backward of a freed module is reported without the module."""
    tracker = ModTracker()
    watch = Watch(tracker)
    model = Relu()
    tracker.register_user_hooks(*watch.hooks())
    with tracker:
        loss = model(torch.rand(10, 10, requires_grad=True)).sum()
        del model
        gc.collect()
        loss.backward()
    return watch.seen


class Some(nn.Module):
    """Each layer except the first is recomputed in backward."""

    def __init__(self, layers, dim, **how):
        super().__init__()
        self.layers, self.how = nn.ModuleList(Relu() for _ in range(layers)), how

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = checkpoint(layer, x, **self.how) if i else layer(x)
        return x


def checkpointed(**how):
    tracker = ModTracker()
    watch = Watch(tracker)
    tracker.register_user_hooks(*watch.hooks())
    model = Some(3, 10, **how)
    with tracker:
        model(torch.rand(2, 10)).sum().backward()
        watch.note("after")
    return watch.seen


def checkpointed_without_reentry():
    return checkpointed(use_reentrant=False)


def checkpointed_to_the_end():
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        return checkpointed(use_reentrant=False)


def checkpointed_with_reentry():
    return checkpointed(use_reentrant=True)


def raising_forward():
    """If a forward raises, its hooks are called and its modules end."""

    class Raising(nn.Module):
        def forward(self, x):
            raise KeyError("of the test")

    tracker = ModTracker()
    watch = Watch(tracker)
    tracker.register_user_hooks(*watch.hooks())
    model = nn.Sequential(nn.Linear(4, 4), Raising())
    with tracker:
        try:
            model(torch.ones(2, 4))
        except KeyError:
            watch.note("raised")
    return watch.seen


SCENARIOS = (
    hierarchy, repeated, one_within_itself, two_roots, outside_of_backward, user_hooks, module_that_is_gone,
    checkpointed_without_reentry, checkpointed_to_the_end, checkpointed_with_reentry, raising_forward,
)  # fmt: skip


if __name__ == "__main__":
    print(json.dumps({scenario.__name__: scenario() for scenario in SCENARIOS}))
