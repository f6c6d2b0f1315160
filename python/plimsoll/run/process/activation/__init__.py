"""Brings the observer into Python processes that the script starts (multiprocessing's spawn, subprocess).

This folder comes first on their PYTHONPATH, so that Python imports `sitecustomize` from here at its start. Programs that
are not Python never look; forked children are the observer's own business.
"""

import os


def reach_children() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    others = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != here]
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *others])
