"""The drop-in trackers in correct and in wrong use."""

import gc
import threading
import weakref

import pytest
import torch
import torch.distributed as dist
import torch.distributed._tools.mod_tracker
from small_training import mlp, step, total
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from plimsoll import FSDPMemTracker, MemTracker


def test_a_tracker_entered_twice_counts_once():
    model, optimizer, batch = mlp()
    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        with tracker:
            step(model, optimizer, batch)
        step(model, optimizer, batch)
        assert len(tracker.step_peaks()) == 2
    assert not nn.modules.module._global_forward_hooks and not nn.modules.module._global_forward_pre_hooks


def test_a_tracker_refuses_to_be_entered_on_another_thread():
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


def test_two_trackers_report_the_same_peak():
    model, optimizer, batch = mlp()
    one, other = MemTracker(), MemTracker()
    for tracker in (one, other):
        tracker.track_external(model, optimizer, batch)
    with one:
        with other:
            step(model, optimizer, batch)
    assert one.get_tracker_snapshot("peak") == other.get_tracker_snapshot("peak")


def test_a_freed_module_leaves_the_reports():
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


def test_a_module_may_be_freed_before_its_backward():
    tracker = MemTracker()
    with tracker:
        model, _, batch = mlp()
        loss = model(batch).sum()
        del model
        gc.collect()
        loss.backward()
    assert total(tracker) > 0


def test_a_tracker_keeps_no_tensor_alive():
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


class NoStorage(torch.Tensor):
    """A wrapper tensor that has no storage, and no `__tensor_flatten__` that names its inner tensors."""

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
    """A wrapper tensor whose `__tensor_flatten__` names two inner tensors."""

    def __new__(cls, inner):
        made = NoStorage.__new__(cls, inner)
        made.other = inner.clone()
        return made

    def __tensor_flatten__(self):
        return ["inner", "other"], None


def test_a_tensor_subclass_without_storage_is_accepted():
    tracker = MemTracker()
    wrapper = NoStorage(torch.ones(16, 16))
    tracker.track_external(wrapper)
    with tracker:
        nn.Linear(16, 16)(wrapper)
    with pytest.raises(RuntimeError, match="no memory"):
        tracker.categorise(wrapper, "mine")


def test_a_wrapper_subclass_counts_its_inner_tensors():
    tracker = MemTracker()
    wrapper = TwoPlaces(torch.ones(16, 16))
    tracker.track_external(wrapper)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Other"] == 2 * 16 * 16 * 4
    tracker.categorise(wrapper, "mine")
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["mine"] == 2 * 16 * 16 * 4


def test_sparse_and_empty_tensors_are_accepted():
    tracker = MemTracker()
    things = [torch.eye(4).to_sparse(), torch.empty(0), None, [torch.ones(2), {"a": (torch.ones(3),)}]]
    tracker.track_external(*things)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")]["Other"] >= (2 + 3) * 4


def test_error_messages_name_the_bad_argument():
    tracker = MemTracker()
    model, optimizer, batch = mlp()
    with tracker:
        step(model, optimizer, batch)
    with pytest.raises(TypeError, match="track_external was given a int"):
        tracker.track_external(3)
    with pytest.raises(ValueError, match="'highest'"):
        tracker.get_tracker_snapshot("highest")
    with pytest.raises(ValueError, match="'MB'"):
        tracker.display_snapshot("current", "MB")
    with pytest.raises(ValueError, match="'MB'"):
        tracker.display_modulewise_snapshots(2, "MB")
    with pytest.raises(AssertionError, match="fully_shard was not applied to this Linear"):
        FSDPMemTracker(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="the tracker has seen no memory"):
        MemTracker().explain()
    with pytest.raises(RuntimeError, match="not entered"):
        tracker._native.leave()


def test_waiting_gradients_equal_the_tensors_that_fsdp_holds():
    """Computed in bf16, kept in fp32: full gradients until a backward with gradient sync, then reduced gradients of a replica
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


def test_a_tracker_does_not_initialise_cuda():
    code = (
        "import torch; from plimsoll import MemTracker; t = MemTracker(); t.__enter__(); "
        "assert not torch.cuda.is_initialized(); x = torch.ones(1024, device='cuda'); "
        "s = t.get_tracker_snapshot()[torch.device('cuda', 0)]; assert s['Total'] == 4096, s"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_process_with_a_tracker_waits_for_autograd_threads_at_exit():
    code = (
        "from plimsoll import autograd_threads; autograd_threads.wait = lambda: print('waited'); "
        "from plimsoll import MemTracker; MemTracker(); print('end')"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["end", "waited"], done.stderr


def test_snapshots_accept_the_members_of_torchs_enumerations():
    from torch.distributed._tools.mem_tracker import _MemRefType, _ModState

    model, optimizer, batch = mlp()
    tracker = MemTracker()
    tracker.track_external(model, optimizer, batch)
    with tracker:
        step(model, optimizer, batch)
    stats = tracker.memory_tracking[model]
    assert stats.snapshots[_ModState.PRE_FW][0][torch.device("cpu")][_MemRefType.PARAM] == stats.parameter_mem


def test_live_tensors_and_causes_add_up_to_the_peak():
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
