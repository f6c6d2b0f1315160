"""Contents of the peak: allocator trace, replay, source lines, out-of-memory report, snapshot."""
