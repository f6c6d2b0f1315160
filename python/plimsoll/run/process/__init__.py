"""The script's processes: activation in children, their end, `--steps`."""
