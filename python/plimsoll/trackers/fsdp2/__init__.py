"""Observes torch's FSDP2. At each of its allocations and stages, the native part gets the use of the memory and the parameter group.
plimsoll's own FSDP2 (src/plimsoll/fsdp) calls the native part at the same places.

    parts       FSDP2's states and parameter groups, for the native part
    memory      the use of each allocation
    stages      the stages of a pass
    patches     installs these while a tracker is entered
"""
