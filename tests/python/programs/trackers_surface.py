"""Names, signatures and errors of the trackers of tracker_choice.py as one JSON object, for test_trackers_against_torch.py."""

import contextlib
import inspect
import io
import json

import torch
import tracker_choice
from torch import nn
from torch.distributed._tools.mem_tracker import _MemRefType, _ModState

TRACKERS = tracker_choice.load()


def signatures():
    """{class: {method: [[parameter, kind, default], …]}} of all public methods."""
    found = {}
    for name, tracker in vars(TRACKERS).items():
        public = {key: getattr(tracker, key) for key in dir(tracker) if not key.startswith("_")}
        methods = {
            "__init__": tracker.__init__,
            **{key: value for key, value in public.items() if inspect.isfunction(value)},
        }
        found[name] = {
            key: [
                [parameter.name, str(parameter.kind), repr(parameter.default)]
                for parameter in inspect.signature(method).parameters.values()
            ]
            for key, method in methods.items()
        }
    return found


def error_of(call):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            call()
    except Exception as error:  # noqa: BLE001  the type is what is asked for
        return type(error).__name__
    return None


def step(tracker, times):
    model = nn.Linear(4, 4)
    with tracker:
        for _ in range(times):
            model(torch.ones(2, 4)).sum().backward()


def misuse():
    tracker, model = TRACKERS.MemTracker(), nn.Linear(4, 4)
    tracker.track_external(model)
    return {
        "a kind of snapshot that there is not": error_of(lambda: tracker.get_tracker_snapshot("highest")),
        "a unit that there is not": error_of(lambda: tracker.display_snapshot("current", units="TB")),
        "something that has no memory": error_of(lambda: tracker.track_external(3)),
        "None": error_of(lambda: tracker.track_external(None)),
        "a list of modules": error_of(lambda: tracker.track_external([nn.Linear(2, 2)], {"x": torch.ones(2)})),
        "a model without FSDP": error_of(lambda: TRACKERS.FSDPMemTracker(nn.Linear(2, 2))),
        "two passes without a reset": error_of(lambda: step(TRACKERS.MemTracker(), 2)),
        "two scopes": error_of(lambda: [step(tracker, 1), tracker.reset_mod_stats(), step(tracker, 1)]),
    }


def keys():
    """The interface of snapshots and statistics."""
    model = nn.Sequential(nn.Linear(4, 4))
    tracker = TRACKERS.MemTracker()
    tracker.track_external(model)
    with tracker as entered, tracker:
        model(torch.ones(2, 4)).sum().backward()
    snapshot = tracker.get_tracker_snapshot()
    books = snapshot[torch.device("cpu")]
    stats = tracker.memory_tracking[model[0]]
    return {
        "entered": entered is tracker,
        "devices": [type(device).__name__ for device in snapshot],
        "by name": books["Parameter"],
        "by torch's member": books[_MemRefType.PARAM],
        "members have values": [getattr(key, "value", key) for key in books][:7],
        "total is last": list(books)[-1],
        "modules": sorted(stats.mod_fqn for stats in tracker.memory_tracking.values()),
        "states": [state.value for state in stats.snapshots],
        "by torch's state": len(stats.snapshots[_ModState.POST_BW]),
        "local peak": {str(device): type(size).__name__ for device, size in stats.local_peak.items()},
        "own": [stats.parameter_mem, stats.buffer_mem, stats.input_mem, stats.output_mem],
        "a copy": tracker.get_tracker_snapshot() is not tracker.get_tracker_snapshot(),
        "dead modules are forgotten": forgotten(),
    }


def forgotten():
    tracker = TRACKERS.MemTracker()
    model = nn.Linear(4, 4)
    with tracker:
        model(torch.ones(2, 4))
    before = len(tracker.memory_tracking)
    del model
    return [before, len(tracker.memory_tracking)]


def displayed():
    """The printed text about modules, without lines that only our tracker has."""
    model = nn.Sequential(nn.Linear(40, 40), nn.Sequential(nn.Linear(40, 40)))
    tracker = TRACKERS.MemTracker()
    tracker.track_external(model)
    with tracker:
        model(torch.ones(2, 40)).sum().backward()
    texts = {}
    for depth in (1, 2, 3):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            tracker.display_modulewise_snapshots(depth=depth, units="KiB")
        texts[f"modules to {depth}"] = text.getvalue()
    with contextlib.redirect_stdout(io.StringIO()) as text:
        TRACKERS.MemTracker().display_snapshot("peak")
    texts["nothing"] = text.getvalue()
    return texts


if __name__ == "__main__":
    print(json.dumps({part.__name__: part() for part in (signatures, misuse, keys, displayed)}))
