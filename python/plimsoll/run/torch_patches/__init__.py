"""Patches of torch that a run needs. Each one is put back or leaves results unchanged."""
