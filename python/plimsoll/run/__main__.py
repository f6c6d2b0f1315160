"""The bootstrap, started by path: `python …/plimsoll/run/__main__.py (script.py | -m module) args…`."""

import os
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _main() -> None:
    # Imports what it needs, then removes the package's home from sys.path: the script must see its usual path.
    sys.path.insert(0, _HOME)
    from plimsoll.run import record, script, settings
    from plimsoll.run.observe import observer
    from plimsoll.run.process import activation

    sys.path.remove(_HOME)

    wanted = settings.claim_main()
    watched = script.Script(sys.argv[1:])
    watcher = observer.Observer(wanted, watched.name)
    activation.reach_children()
    watcher.wait_for_torch()
    try:
        watched.run()
    except script.NoSuchModule as missing:
        record.write_bad_usage(wanted.record_dir, f"-m {watched.name} cannot be run: {missing}")
        end = SystemExit(2)
        watcher.ended(end)
        raise end from None
    except SystemExit as end:
        watcher.ended(end)
        end.__traceback__ = None
        raise
    except BaseException as error:
        watcher.ended(error)
        trace = script.strip_own_frames(error)
        error.__traceback__ = trace
        sys.excepthook(type(error), error, trace)
        # The traceback is printed. The interpreter does the rest (exit code 1, or death by SIGINT).
        sys.excepthook = lambda *_: None
        raise
    else:
        watcher.ended(None)


if __name__ == "__main__":
    _main()
