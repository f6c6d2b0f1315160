"""The drop-in trackers and hooks in backward: of modules, of parameters and of other leaves."""

import gc

import torch
import torch.distributed._tools.mod_tracker
from small_training import mlp
from torch import nn

from plimsoll import MemTracker, ModTracker


def test_autograd_grad_of_leaves_ends_each_modules_backward():
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


def test_the_scripts_hooks_on_parameters_still_run():
    """Python and libtorch keep the hooks of a leaf in one place, and the second to register takes that place."""
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
        assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Gradient"] == sum(
            p.grad.nbytes for p in model.parameters()
        )
    later.remove()
    weight.grad = None
    model(batch).sum().backward()
    assert torch.equal(weight.grad, torch.zeros_like(weight)) and calls == ["before", "before"]


def test_leaves_passed_through_modules_do_not_accumulate_hooks():
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
            # Leaf: a hook for each of the two modules that took it. Parameter: the hook that names its gradient.
            assert hooks_of(leaf, module.table) == [2, 1], hooks_of(leaf, module.table)
    assert hooks_of(leaf, module.table) == [0, 1], hooks_of(leaf, module.table)
    del tracker
    gc.collect()
    assert hooks_of(leaf, module.table) == [0, 0], hooks_of(leaf, module.table)


def test_a_module_called_with_keywords_ends_its_backward():
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


def test_backward_hooks_get_the_same_gradients_as_torchs():
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
                inputs = (
                    torch.ones(2, 4, requires_grad=needs_gradient),
                    torch.ones(2, 4, requires_grad=needs_gradient),
                )
                sum(output.sum() for output in model(*inputs)).backward()
        return sorted(seen, key=str)

    def plain(value):
        if isinstance(value, (tuple, list)):
            return type(value)(plain(one) for one in value)
        return value.tolist() if value is not None else None

    for model in (Two, Within):
        ours, theirs = seen_by(ModTracker, model), seen_by(torch.distributed._tools.mod_tracker.ModTracker, model)
        assert ours == theirs, (model, ours, theirs)
