"""Python imports this at startup in processes that an observed script started: see the package's docstring."""

import os
import sys


def _activate() -> None:
    # The absolute path that `reach_children` set. The working directory may be a deleted one.
    here = os.path.dirname(__file__)
    sys.path[:] = [part for part in sys.path if part != here]
    _chain(here)
    if not os.environ.get("PLIMSOLL_RUN"):
        return
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here))))
    sys.path.insert(0, home)
    try:
        from plimsoll.run import settings
        from plimsoll.run.observe import observer
    finally:
        sys.path.remove(home)
    wanted = settings.read()
    # The bootstrap observes the main process. After exec the process has the same id but no bootstrap, so it starts here.
    if wanted is not None:
        watcher = observer.Observer(wanted, sys.argv[0] if getattr(sys, "argv", None) else "")
        watcher.wait_for_torch()


def _chain(here: str) -> None:
    """Runs the user's own sitecustomize, which this file hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or (spec.origin and os.path.dirname(spec.origin) == here):
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_activate()
