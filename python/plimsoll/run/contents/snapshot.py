"""`--snapshot`: torch's own memory snapshot, as `torch.cuda.memory._dump_snapshot` writes it and memory_viz opens it."""

import os
import pickle

from plimsoll.run.contents.history import Snapshot


def write(snapshot: Snapshot, path: str) -> None:
    """All or nothing: a reader never sees half of it."""
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            pickle.dump(snapshot, file)
        os.replace(partial, path)
    except OSError:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
