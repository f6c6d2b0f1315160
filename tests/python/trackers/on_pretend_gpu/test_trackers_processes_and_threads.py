"""Trackers while a script forks, starts threads, compiles, transforms functions and collects garbage."""

import gc
import os
import sys
import threading
import warnings
import weakref

import torch
import torch.distributed as dist
from small_training import mlp, step, total
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.testing._internal.distributed.fake_pg import FakeStore

from plimsoll import FSDPMemTracker, MemTracker


def state_bytes(optimizer):
    return sum(value.nbytes for state in optimizer.state.values() for value in state.values())


def test_a_forked_child_trains_as_without_a_tracker():
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


def test_data_loader_workers_run_while_a_tracker_is_entered():
    data = torch.utils.data.TensorDataset(torch.arange(32.0))
    with MemTracker():
        loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
        assert sum(batch.sum().item() for (batch,) in loader) == sum(range(32))


def test_threads_train_to_the_same_weights_as_without_a_tracker():
    start, trained = mlp()[0].state_dict(), {}

    def train(kind, number):
        model, optimizer, batch = mlp()
        model.load_state_dict(start)  # Threads share one random number generator.
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
    assert books["Parameter"] - before.get("Parameter", 0) == sum(
        p.nbytes for model in models for p in model.parameters()
    ), books
    assert books["Optstate"] - before.get("Optstate", 0) == sum(state_bytes(optimizer) for optimizer in optimizers), (
        books
    )
    assert tracker.parents() == {"Global"}


def test_compiled_code_is_not_compiled_again():
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
    kept = {
        "Parameter": own,
        "Gradient": own,
        "Other": batch.nbytes,
        "Activation": sum(one.nbytes for one in found[0]),
        "Temp": 0,
    }
    assert {category: books[category] for category in kept} == kept, books


def test_vmap_and_grad_work_while_a_tracker_is_entered():
    model = nn.Linear(4, 4)
    with MemTracker():
        per_sample = torch.func.vmap(lambda x: model(x))(torch.ones(3, 4))
        gradient = torch.func.grad(lambda x: model(x).sum())(torch.ones(4))
    assert per_sample.shape == (3, 4) and gradient.shape == (4,)


def test_a_tracker_may_be_collected_while_another_is_notified():
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    original, thresholds = FSDPParamGroup.is_unsharded, gc.get_threshold()

    def collected_in_there(group):
        if "fsdp2" in sys._getframe(1).f_code.co_filename:  # Called while trackers are notified of a stage.
            gc.set_threshold(1)
            garbage = [[] for _ in range(100)]
            gc.set_threshold(10**6)
            looks.append(len(garbage))
        return original.fget(group)

    looks = []
    try:
        model = fully_shard(nn.Linear(8, 8, device="cuda"))
        gc.set_threshold(10**6)
        dropped = FSDPMemTracker(model)
        dropped.itself = dropped
        is_there = weakref.ref(dropped)
        del dropped
        FSDPParamGroup.is_unsharded = property(collected_in_there)
        with FSDPMemTracker(model):
            model(torch.ones(2, 8, device="cuda")).sum().backward()
        assert looks and is_there() is not None
        gc.collect()
        assert is_there() is None
    finally:
        FSDPParamGroup.is_unsharded = original
        gc.set_threshold(*thresholds)
        dist.destroy_process_group()
