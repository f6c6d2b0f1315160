"""Starts the observer in Python processes that the script starts (multiprocessing's spawn, subprocess).

This folder comes first on their PYTHONPATH, so Python imports its `sitecustomize` at startup. `Observer` handles forked
children itself.
"""

import os


def reach_children() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    others = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != here]
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *others])
