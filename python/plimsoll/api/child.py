"""The child of `estimate`: `plimsoll run … -m plimsoll.api.child PAYLOAD`.

The observer handles it like any script. An exception of the function leaves the process like one of a script, so the observer
sees it. Its traceback goes to the parent instead of standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plimsoll.api import main_module
from plimsoll.api.payload import Payload
from plimsoll.run.script import Script, users_part

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> None:
    payload = Payload.read(Path(sys.argv[1]))
    Path(payload.folder, "pid").write_text(str(os.getpid()))
    _take_streams(payload)
    stage = "load"
    try:
        if payload.script is not None:
            stage = "call"
            Script(list(payload.script)).run()
            return
        _take_paths(payload)
        call = _load(payload)
        stage = "call"
        call()
    except SystemExit:
        raise
    except BaseException as error:
        _leave(payload, stage, error)
        sys.excepthook = lambda *_: None  # the parent reports the error
        raise


def _take_streams(payload: Payload) -> None:
    """Sends the function's output to the caller's streams; the command's output stays separate."""
    for target, source in ((1, payload.stdout), (2, payload.stderr)):
        os.dup2(source, target)
    for source in {payload.stdout, payload.stderr} - {1, 2}:
        os.close(source)


def _take_paths(payload: Payload) -> None:
    sys.argv[:] = payload.argv
    # Under -m the working directory is first. The parent's path decides whether it stays.
    sys.path[:] = payload.paths if payload.paths_are_all else [*payload.paths, *sys.path[1:]]
    home = os.path.dirname(_OWN)
    if home not in sys.path:
        sys.path.append(home)


def _load(payload: Payload) -> Callable[[], Any]:
    if payload.main is not None:
        main_module.run_again(payload.main)
    assert payload.call is not None
    function, args, kwargs = pickle.loads(payload.call)
    if payload.named is not None:
        module, _, name = payload.named.partition(":")
        function = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    return lambda: function(*args, **kwargs)


def _leave(payload: Payload, stage: str, error: BaseException) -> None:
    text = "".join(traceback.format_exception(type(error), error, users_part(error)))
    failure = {"stage": stage, "type": type(error).__name__, "message": str(error), "traceback": text}
    Path(payload.folder, "failure.json").write_text(json.dumps(failure))


if __name__ == "__main__":
    main()
