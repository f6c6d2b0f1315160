"""The child side of `plimsoll run`: observes a training script from inside its own Python process.

The command starts `__main__.py` by path, in the user's interpreter, with the pretend GPU preloaded. This code uses only the
standard library and the user's torch (2.5 to 2.13). It allocates nothing on the device, and it changes neither the behaviour of the
allocator nor the script's own view of it.

    __main__           the bootstrap
    script             runs the script as Python does
    settings           the settings that the command passes
    pretend_control    the pretend GPU's control interface
    attribution        categories, owners and causes (needs the native part)
    record             the record that the command reads

    process            activation in child processes, the end of multiprocessing's children, `--steps`
    observe            observer (the process), session (the parts together), phases, peaks; hooks, compiled and graphs report
                       events to phases; progress, defects
    contents           history and blocks (the allocator's trace and its replay), contents and lines (live allocations by line of
                       user code), oom, native_stack
    values             readbacks, shape_use and value_flow (does a read-back decide a shape?), host_values (answers for libraries)
    torch_patches      after_import (the mechanism), late_compiler, foreach_sharding, garbage_collection, ddp_buckets,
                       redirect_ctypes
    lone_rank          torch.distributed with one process
"""
