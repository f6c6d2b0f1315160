"""gloo without peers: the collectives on CPU tensors of a lone rank.

torch's FakeProcessGroup answers from the rank's own input, and replaces ProcessGroupGloo. Its answers are those of peers with this
rank's values, except that it does not reduce: see `cpu_reductions.py`.
"""

from types import SimpleNamespace
from typing import Any

from torch._C import _distributed_c10d
from torch.distributed import distributed_c10d

from plimsoll.run.lone_rank import cpu_reductions

_real_gloo: Any = getattr(distributed_c10d, "ProcessGroupGloo", None)


def _fake_process_group(rank: int, size: int) -> Any:
    fake: Any = _distributed_c10d.FakeProcessGroup
    create = getattr(fake, "_create_internal", fake)  # torch 2.5 to 2.7 have a constructor
    options = getattr(fake, "Options", None)
    return create(rank, size, options()) if options is not None else create(rank, size)


class _LoneGlooType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (_distributed_c10d.FakeProcessGroup, _real_gloo))

    # Options, create_device and so on are gloo's own.
    def __getattr__(cls, name: str) -> Any:
        return getattr(_real_gloo, name)


class LoneGloo(metaclass=_LoneGlooType):
    """Replaces ProcessGroupGloo; makes a backend that never connects."""

    def __new__(cls, store: Any, rank: int, size: int, *args: Any, **options: Any) -> Any:
        backend = _fake_process_group(rank, size)
        try:
            backend.options.group_name = ""
        except Exception:  # before torch 2.8: unused, and FakeProcessGroup lacks them
            type(backend).options = property(lambda self: SimpleNamespace())
        return backend


def _keep_unwrapped(wrapped_pg: Any, *args: Any, **options: Any) -> Any:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL would compare each collective with those of the peers through gloo."""
    return wrapped_pg


def _monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    if distributed_c10d._rank_not_in_group(group):
        return
    if distributed_c10d.get_backend(group) != distributed_c10d.Backend.GLOO:
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")


_real_split_group: Any = getattr(distributed_c10d, "split_group", None)


def _split_group(parent_pg: Any = None, split_ranks: Any = None, **options: Any) -> Any:
    """FakeProcessGroup cannot be split, so this makes a new group of the same ranks, with the same communicators."""
    parent = parent_pg if parent_pg is not None else distributed_c10d._get_default_group()
    backends = (parent._get_backend(device) for device in parent._device_types)
    if split_ranks is None or not any(isinstance(b, _distributed_c10d.FakeProcessGroup) for b in backends):
        return _real_split_group(parent_pg, split_ranks, **options)
    own = next((ranks for ranks in split_ranks if parent.rank() in ranks), None)
    if own is None:
        return None
    members = distributed_c10d.get_process_group_ranks(parent)
    return distributed_c10d.new_group([members[rank] for rank in own], **options)


def _complete_fake_works() -> None:
    """Makes FakeWork report completion, not only in wait(): a loop may poll it."""
    work = getattr(_distributed_c10d, "FakeWork", None)
    if work is not None:
        work.is_completed = work.is_success = lambda self: True
        return
    # In older versions FakeWork appears as a Work, with an unknown operation.
    work = _distributed_c10d.Work
    unknown = int(getattr(_distributed_c10d, "OpType").UNKNOWN)
    for name in ("is_completed", "is_success"):
        ask = getattr(work, name)
        setattr(work, name, lambda self, ask=ask: int(self._get_op_type()) == unknown or ask(self))


def replacements() -> dict[str, Any]:
    if _real_gloo is None:
        return {}
    fake: Any = _distributed_c10d.FakeProcessGroup
    # ProcessGroupGloo counts its collectives, for dumps only. FakeProcessGroup raises instead.
    fake._set_sequence_number_for_group = lambda self: None
    # gloo has this method.
    fake._set_default_timeout = lambda self, timeout: None
    _complete_fake_works()
    cpu_reductions.install()
    found = {
        "ProcessGroupGloo": LoneGloo,
        "_create_process_group_wrapper": _keep_unwrapped,
        "monitored_barrier": _monitored_barrier,
    }
    if _real_split_group is not None:  # torch 2.5 has none
        found["split_group"] = _split_group
    return found
