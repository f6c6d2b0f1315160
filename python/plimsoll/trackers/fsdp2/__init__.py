"""torch's FSDP2, as trackers see it. Around each of its allocations, and at each of its stages, the native part is told what the
memory is for and of which group: the same places at which plimsoll's own FSDP2 (src/plimsoll/fsdp) tells it.

    parts       what it consists of: asked by the native part
    memory      what it allocates, and for which use
    stages      where a pass is
    patches     all of these in their places while a tracker is entered
"""
