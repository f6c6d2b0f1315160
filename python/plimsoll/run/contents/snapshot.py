"""`--snapshot`: torch's memory snapshot in the format of `torch.cuda.memory._dump_snapshot`, for memory_viz."""

import os
import pickle

from plimsoll.run.contents.history import Snapshot


def write(snapshot: Snapshot, path: str) -> None:
    """Atomic: a reader never sees a partial file."""
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            pickle.dump(snapshot, file)
        os.replace(partial, path)
    except OSError:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
