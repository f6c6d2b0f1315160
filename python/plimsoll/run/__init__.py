"""The child side of `plimsoll run`: what watches a training script from inside its own Python process.

The command starts `__main__.py` by path, in the user's interpreter, with the pretend GPU preloaded. Everything here
uses only the standard library and the user's torch (2.5 to 2.13), allocates nothing on the device and leaves the
allocator's behaviour and the script's own view of it as they would be.

    __main__      the bootstrap                      peaks, script_peaks    exact peaks, and the script's own view of them
    script        runs the script as Python would    history, blocks     the allocator's trace, and its replay
    activation    the same for spawned children      contents, lines     what was alive at the peak, by the user's line
    observer      one process, from start to end     oom, readbacks      running out of memory; values read back
    processes     how a child of it ends             record, progress    what is written, what is shown
    watch         puts the parts together            stop, snapshot      `--steps`, `--snapshot`
    phases        steps and phases, without torch    defects             what the observer itself failed at
    hooks, compiled, graphs   what drives phases    attribution                 categories and modules
"""
