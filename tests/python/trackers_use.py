"""The other side of test_trackers_use.py: one function for each claim, run in one process on the pretend GPU. What each raised, or
null, as JSON on standard output."""

import gc
import json
import multiprocessing
import os
import re
import threading
import traceback
import warnings
import weakref

import torch
import torch.distributed as dist
import torch.distributed._tools.mod_tracker
import what_is_torchs
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from plimsoll import FSDPMemTracker, MemTracker, ModTracker
from plimsoll.native import _C
from plimsoll.run.defects import Defects
from plimsoll.trackers.fsdp2 import parts
from plimsoll.trackers.hooks import hooks

CLAIMS = {}


def claim(function):
    CLAIMS[function.__name__] = function
    return function


def mlp(device="cpu", width=64):
    model = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)).to(device)
    return model, torch.optim.AdamW(model.parameters()), torch.ones(8, width, device=device)


def step(model, optimizer, batch):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def total(tracker, device="cpu", type="peak"):
    return tracker.get_tracker_snapshot(type)[torch.device(device)]["Total"]


def raises(kind, part, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"nothing was raised, where {kind.__name__} was due")


@claim
def entering_twice_is_one_tracking():
    model, optimizer, batch = mlp()
    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        with tracker:
            step(model, optimizer, batch)
        step(model, optimizer, batch)
        assert len(tracker.step_peaks()) == 2
    assert not nn.modules.module._global_forward_hooks and not nn.modules.module._global_forward_pre_hooks


@claim
def entering_on_another_thread_is_refused():
    tracker = MemTracker()
    found = []

    def enter():
        try:
            tracker.__enter__()
        except RuntimeError as error:
            found.append(str(error))

    with tracker:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(found) == 1 and "another thread" in found[0], found
    with tracker:
        pass


@claim
def two_trackers_see_the_same():
    model, optimizer, batch = mlp()
    one, other = MemTracker(), MemTracker()
    for tracker in (one, other):
        tracker.track_external(model, optimizer, batch)
    with one:
        with other:
            step(model, optimizer, batch)
    assert one.get_tracker_snapshot("peak") == other.get_tracker_snapshot("peak")


@claim
def a_module_that_is_freed_is_forgotten():
    tracker = MemTracker()
    with tracker:
        model, optimizer, batch = mlp()
        step(model, optimizer, batch)
        assert len(tracker.memory_tracking) == 4
        gone = weakref.ref(model)
        del model, optimizer
        gc.collect()
        assert gone() is None
        assert len(tracker.memory_tracking) == 0
        model, optimizer, batch = mlp()
        step(model, optimizer, batch)
        assert {stats.mod_fqn for stats in tracker.memory_tracking.values()} == {
            "Sequential", "Sequential.0", "Sequential.1", "Sequential.2",
        }  # fmt: skip


@claim
def a_module_that_is_freed_before_its_backward_is_no_error():
    tracker = MemTracker()
    with tracker:
        model, _, batch = mlp()
        loss = model(batch).sum()
        del model
        gc.collect()
        loss.backward()
    assert total(tracker) > 0


@claim
def tracking_keeps_nothing_alive():
    tracker = MemTracker()
    with tracker:
        model, optimizer, batch = mlp("cuda")
        before = torch.cuda.memory_stats()["active_bytes.all.current"]
        step(model, optimizer, batch)
        del model, optimizer, batch
        gc.collect()
        torch.ones((), device="cuda", requires_grad=True).clone().backward()
    left = tracker.get_tracker_snapshot("current").get(torch.device("cuda", 0), {})
    assert left.get("Parameter", 0) == left.get("Gradient", 0) == left.get("Optstate", 0) == 0, left
    assert before > 0


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
        before = what_is_torchs.there_is(model, optimizer)
        tracker, within = make(model, optimizer), set()

        def tracked(scope=tracker, training=training, before=before, within=within):
            with scope:
                within.update(what_is_torchs.changed(before, what_is_torchs.there_is(*training[:2])))
                step(*training)

        def left(training=training, before=before):
            return [re.sub(r"\d+", "_", name) for name in what_is_torchs.changed(before, what_is_torchs.there_is(*training[:2]))]

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


class NoStorage(torch.Tensor):
    """A tensor without memory of its own that does not say what is in it."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrap = lambda value: value.inner if isinstance(value, NoStorage) else value  # noqa: E731
        return func(*[unwrap(value) for value in args], **{key: unwrap(value) for key, value in (kwargs or {}).items()})


class TwoPlaces(NoStorage):
    """One that says it: two tensors, of which one is its half."""

    def __new__(cls, inner):
        made = NoStorage.__new__(cls, inner)
        made.other = inner.clone()
        return made

    def __tensor_flatten__(self):
        return ["inner", "other"], None


@claim
def a_subclass_without_storage_is_taken():
    tracker = MemTracker()
    wrapper = NoStorage(torch.ones(16, 16))
    tracker.track_external(wrapper)
    with tracker:
        nn.Linear(16, 16)(wrapper)
    raises(RuntimeError, "no memory", tracker.categorise, wrapper, "mine")


@claim
def a_wrapper_counts_what_is_in_it():
    tracker = MemTracker()
    wrapper = TwoPlaces(torch.ones(16, 16))
    tracker.track_external(wrapper)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Other"] == 2 * 16 * 16 * 4
    tracker.categorise(wrapper, "mine")
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["mine"] == 2 * 16 * 16 * 4


@claim
def sparse_and_empty_tensors_are_taken():
    tracker = MemTracker()
    things = [torch.eye(4).to_sparse(), torch.empty(0), None, [torch.ones(2), {"a": (torch.ones(3),)}]]
    tracker.track_external(*things)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Other"] >= (2 + 3) * 4


@claim
def bad_arguments_are_named():
    tracker = MemTracker()
    raises(TypeError, "track_external was given a int", tracker.track_external, 3)
    raises(ValueError, "'highest'", tracker.get_tracker_snapshot, "highest")
    raises(ValueError, "'MB'", tracker.display_snapshot, "current", "MB")
    raises(ValueError, "'MB'", tracker.display_modulewise_snapshots, 2, "MB")
    raises(AssertionError, "fully_shard was not applied to this Linear", FSDPMemTracker, nn.Linear(2, 2))
    raises(RuntimeError, "nothing was seen", MemTracker().explain) if not tracker.get_tracker_snapshot("peak") else None
    raises(RuntimeError, "not entered", tracker._native.leave)


@claim
def threads_train_as_without_a_tracker():
    start, trained = mlp()[0].state_dict(), {}

    def train(kind, number):
        model, optimizer, batch = mlp()
        model.load_state_dict(start)  # Threads share the generator of random numbers.
        for _ in range(5):
            step(model, optimizer, number * batch)
        trained[kind, number] = model, optimizer

    def on_threads(kind):
        threads = [threading.Thread(target=train, args=(kind, number)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {number: trained[kind, number][0].state_dict() for number in range(1, 5)}

    untracked = on_threads("untracked")
    tracker = MemTracker()
    with tracker:
        before = tracker.get_tracker_snapshot().get(torch.device("cpu"), {})
        tracked = on_threads("tracked")
        books = tracker.get_tracker_snapshot()[torch.device("cpu")]
    for number, weights in tracked.items():
        assert all(torch.equal(weights[name], values) for name, values in untracked[number].items()), number
        assert not torch.equal(weights["0.weight"], start["0.weight"]) and (
            number == 1 or not torch.equal(weights["0.weight"], tracked[1]["0.weight"])
        )
    models, optimizers = zip(*(trained["tracked", number] for number in range(1, 5)))
    assert books["Parameter"] - before.get("Parameter", 0) == sum(p.nbytes for model in models for p in model.parameters()), books
    assert books["Optstate"] - before.get("Optstate", 0) == sum(state_bytes(optimizer) for optimizer in optimizers), books
    assert tracker.parents() == {"Global"}


def state_bytes(optimizer):
    return sum(value.nbytes for state in optimizer.state.values() for value in state.values())


@claim
def a_forked_child_trains_as_without_a_tracker():
    tracker = MemTracker()
    read, write = os.pipe()
    with tracker:
        child = os.fork()
        if child == 0:
            model, optimizer, batch = mlp()
            step(model, optimizer, batch)
            with MemTracker() as own:
                step(model, optimizer, batch)
            os.write(write, str(total(own)).encode())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        model, optimizer, batch = mlp()
        step(model, optimizer, batch)
    assert status == 0 and int(os.read(read, 100)) > 0
    assert total(tracker) > 0


@claim
def workers_of_a_data_loader_work():
    data = torch.utils.data.TensorDataset(torch.arange(32.0))
    with MemTracker():
        loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
        assert sum(batch.sum().item() for (batch,) in loader) == sum(range(32))


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


@claim
def functions_of_functorch_pass():
    model = nn.Linear(4, 4)
    with MemTracker():
        per_sample = torch.func.vmap(lambda x: model(x))(torch.ones(3, 4))
        gradient = torch.func.grad(lambda x: model(x).sum())(torch.ones(4))
    assert per_sample.shape == (3, 4) and gradient.shape == (4,)


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


@claim
def a_tracker_may_be_garbage_while_another_is_told():
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    original, thresholds = parts.whole_parameters_of, gc.get_threshold()

    def collected_in_there(group):
        gc.set_threshold(1)
        garbage = [[] for _ in range(100)]
        gc.set_threshold(10**6)
        looks.append(len(garbage))
        return original(group)

    looks = []
    try:
        model = fully_shard(nn.Linear(8, 8, device="cuda"))
        gc.set_threshold(10**6)
        dropped = FSDPMemTracker(model)
        dropped.itself = dropped
        is_there = weakref.ref(dropped)
        del dropped
        parts.whole_parameters_of = collected_in_there
        with FSDPMemTracker(model):
            model(torch.ones(2, 8, device="cuda")).sum().backward()
        assert looks and is_there() is not None
        gc.collect()
        assert is_there() is None
    finally:
        parts.whole_parameters_of = original
        gc.set_threshold(*thresholds)
        dist.destroy_process_group()


@claim
def gradients_that_wait_are_what_fsdp_holds():
    """Whole ones until a backward with gradient sync, computed in bf16 and kept in fp32; then ones that a replica has reduced,
    until a backward with all-reduce."""
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    try:
        mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("replicate", "shard"))
        model = nn.Sequential(nn.Linear(128, 256), nn.Linear(256, 256)).to("cuda")
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for part in (*model, model):
            fully_shard(part, mesh=mesh, mp_policy=policy)
        groups = [group for layer in model for group in layer._get_fsdp_state()._fsdp_param_groups]
        params = [param for group in groups for param in group.fsdp_params]

        def held():
            return {
                "Accumulated Grad": [param.unsharded_accumulated_grad for param in params],
                "Partial Grad": [group._partial_reduce_output for group in groups],
                "Sharded Grad": [p.grad.to_local() for p in model.parameters() if p.grad is not None],
            }

        def blocks(tensors):
            storages = {tensor.data_ptr(): tensor for tensor in (t.untyped_storage() for t in tensors if t is not None)}
            return sum(-(-storage.nbytes() // 512) * 512 for storage in storages.values())

        whole = sum(4 * param._orig_size.numel() for param in params)
        seen = []
        with FSDPMemTracker(model) as tracker:
            for sync, all_reduce in ((False, False), (False, False), (True, False), (True, True)):
                model.set_requires_gradient_sync(sync)
                model.set_requires_all_reduce(all_reduce)
                model(torch.ones(2, 128, device="cuda")).sum().backward()
                expected = {category: blocks(tensors) for category, tensors in held().items()}
                books = tracker.get_tracker_snapshot()[torch.device("cuda", 0)]
                assert {category: books.get(category, 0) for category in expected} == expected, (books, expected)
                seen.append(tuple(expected.values()))
        assert seen == [(whole, 0, 0), (whole, 0, 0), (0, whole // 2, 0), (0, 0, whole // 2)], (seen, whole)
    finally:
        dist.destroy_process_group()


@claim
def compiled_code_is_left_alone():
    model, _, batch = mlp()
    calls = {"compiled": 0, "run": 0}

    def counting(graph, inputs):
        calls["compiled"] += 1

        def run(*args):
            calls["run"] += 1
            return graph.forward(*args)

        return run

    compiled = torch.compile(model, backend=counting)

    def passes():
        compiled.zero_grad()
        output = compiled(batch)
        output.sum().backward()
        return [output.detach(), *(parameter.grad.clone() for parameter in compiled.parameters())]

    expected = passes()
    tracker = MemTracker()
    tracker.track_external(model, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tracker:
            found = [passes()]
            books = tracker.get_tracker_snapshot()[torch.device("cpu")]
            found.append(passes())
    found.append(passes())
    assert calls == {"compiled": 1, "run": 4}, calls
    assert all(torch.equal(one, other) for each in found for one, other in zip(each, expected, strict=True))
    own = sum(parameter.nbytes for parameter in model.parameters())
    kept = {"Parameter": own, "Gradient": own, "Other": batch.nbytes, "Activation": sum(one.nbytes for one in found[0]), "Temp": 0}
    assert {category: books[category] for category in kept} == kept, books


@claim
def cuda_is_not_initialised_by_a_tracker():
    code = (
        "import torch; from plimsoll import MemTracker; t = MemTracker(); t.__enter__(); "
        "assert not torch.cuda.is_initialized(); x = torch.ones(1024, device='cuda'); "
        "s = t.get_tracker_snapshot()[torch.device('cuda', 0)]; assert s['Total'] == 4096, s"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@claim
def members_of_torchs_enumerations_find_ours():
    from torch.distributed._tools.mem_tracker import _MemRefType, _ModState

    model, optimizer, batch = mlp()
    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        step(model, optimizer, batch)
    stats = tracker.memory_tracking[model]
    assert stats.snapshots[_ModState.PRE_FW][0][torch.device("cpu")][_MemRefType.PARAM] == stats.parameter_mem


@claim
def what_is_alive_at_the_peak_sums_to_it():
    model, optimizer, batch = mlp("cuda")
    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    torch.cuda.reset_peak_memory_stats()
    with tracker:
        for _ in range(3):
            step(model, optimizer, batch)
    peak = torch.cuda.memory_stats()["active_bytes.all.peak"]
    assert total(tracker, "cuda:0") == peak
    assert sum(tensor.bytes for tensor in tracker.alive_at_peak("cuda:0")) == peak
    explanation = tracker.explain()
    assert explanation.total == peak == sum(cause.bytes for cause in explanation.causes)
    assert len(tracker.step_peaks()) == 3 and "backward" in tracker.phase_peaks()


def main():
    gc.freeze()  # What was imported is not looked through again and again.
    found = {}
    # A process that has trained on several threads cannot fork and train on: torch's own limit.
    for name, check in sorted(CLAIMS.items(), key=lambda item: "fork" not in item[0]):
        try:
            check()
            found[name] = None
        except BaseException:
            found[name] = traceback.format_exc()
        gc.collect()
    print(json.dumps(found))


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
