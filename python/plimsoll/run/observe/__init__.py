"""The observer: one process from start to end, its steps, phases and peaks."""
