"""DistributedDataParallel around a module on the CPU, with a gloo that has no peers.

The reducer needs a reduction's result and the logger needs gloo's threads. FakeProcessGroup, which replaces gloo, has neither. Peers
hold this rank's gradients, so their mean is the content of the bucket.
"""

import functools
import threading
from types import ModuleType
from typing import Any

import torch

from plimsoll.run.lone_rank.cpu_reductions import has_gloo


class _Thread(threading.local):
    constructs = False


_thread = _Thread()


def _mean(state: Any, bucket: Any) -> "torch.futures.Future[torch.Tensor]":
    mean: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    mean.set_result(bucket.buffer())
    return mean


def replace_in(parallel: ModuleType) -> None:
    """`parallel`: torch.nn.parallel.distributed, after its import."""
    logger = torch.distributed.Logger
    note, ddp = logger.set_construction_data_and_log, parallel.DistributedDataParallel
    init = ddp._ddp_init_helper

    @functools.wraps(note)
    def note_construction(self: Any, *args: Any, **options: Any) -> None:
        if not _thread.constructs:
            note(self, *args, **options)

    @functools.wraps(init)
    def init_helper(self: Any, *args: Any, **options: Any) -> None:
        _thread.constructs = self.device_type == "cpu" and has_gloo(self.process_group)
        try:
            init(self, *args, **options)
            if _thread.constructs:
                torch.distributed._register_comm_hook(self.reducer, None, _mean)
        finally:
            _thread.constructs = False

    logger.set_construction_data_and_log, ddp._ddp_init_helper = note_construction, init_helper
