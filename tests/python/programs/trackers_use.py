"""Claims of test_trackers_use.py: trackers in good and in bad use."""

import gc
import threading
import weakref

import torch
import torch.distributed as dist
import torch.distributed._tools.mod_tracker
from claims import claim, main
from small_training import mlp, raises, step, total
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from plimsoll import FSDPMemTracker, MemTracker


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
def a_process_with_a_tracker_waits_for_autograds_threads_at_its_end():
    code = (
        "from plimsoll import autograd_threads; autograd_threads.wait = lambda: print('waited'); "
        "from plimsoll import MemTracker; MemTracker(); print('over')"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["over", "waited"], done.stderr


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


if __name__ == "__main__":
    main()
