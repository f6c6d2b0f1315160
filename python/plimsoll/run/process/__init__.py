"""Processes and threads of the script: activation in children, how they end, `--steps`."""
