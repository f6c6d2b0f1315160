"""DistributedDataParallel around a module on the CPU, whose gloo has no peers.

Its reducer asks a reduction for its result, and its logger asks gloo for its threads: FakeProcessGroup, which stands in for gloo, has
neither. Peers hold the gradients that this rank holds, so their mean is what is in the bucket already.
"""

import functools
import threading
from types import ModuleType
from typing import Any

import torch

from plimsoll.run.lone_rank.cpu_reductions import has_gloo


class _Thread(threading.local):
    makes_one = False


_thread = _Thread()


def _mean(state: Any, bucket: Any) -> "torch.futures.Future[torch.Tensor]":
    mean: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    mean.set_result(bucket.buffer())
    return mean


def replace_in(parallel: ModuleType) -> None:
    """`torch.nn.parallel.distributed`, once it is imported."""
    logger = torch.distributed.Logger
    note, ddp = logger.set_construction_data_and_log, parallel.DistributedDataParallel
    init = ddp._ddp_init_helper

    @functools.wraps(note)
    def note_construction(self: Any, *args: Any, **options: Any) -> None:
        if not _thread.makes_one:
            note(self, *args, **options)

    @functools.wraps(init)
    def init_helper(self: Any, *args: Any, **options: Any) -> None:
        _thread.makes_one = self.device_type == "cpu" and has_gloo(self.process_group)
        try:
            init(self, *args, **options)
            if _thread.makes_one:
                torch.distributed._register_comm_hook(self.reducer, None, _mean)
        finally:
            _thread.makes_one = False

    logger.set_construction_data_and_log, ddp._ddp_init_helper = note_construction, init_helper
