"""What torch's profiler hears of the CPU's allocator, for tests that compare with it."""

import torch


def peak_on_cpu(run):
    """What CPU memory run() takes at most beyond what there was, as torch's profiler hears of it from the allocator."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    events = [event for event in events if event.device_type() == torch._C._autograd.DeviceType.CPU]
    now = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest
