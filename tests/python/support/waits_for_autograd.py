"""Runs a program as `python PROGRAM argument…` does, and waits at its end for autograd's threads, as the package does.

Without this, a program that does not use the package and ends right after a backward pass sometimes aborts: see autograd_threads.py.
"""

import importlib.util
import os
import runpy
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location(
    "autograd_threads", Path(__file__).resolve().parents[3] / "python" / "plimsoll" / "autograd_threads.py"
)
autograd_threads = importlib.util.module_from_spec(spec)
spec.loader.exec_module(autograd_threads)
autograd_threads.wait_at_exit()
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
