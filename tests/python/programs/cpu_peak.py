"""The peak of the CPU's allocator, from torch's profiler."""

import torch


def peak_on_cpu(run):
    """The peak of CPU memory that run() allocates, from the profiler's events of the allocator."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    events = [event for event in events if event.device_type() == torch._C._autograd.DeviceType.CPU]
    now = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest
