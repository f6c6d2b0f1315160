"""Plimsoll: how far a GPU may be loaded."""
