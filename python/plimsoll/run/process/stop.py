"""`--steps K`: the run ends when step K + 1 would begin."""


class EnoughSteps(SystemExit):
    """Ends the script like `sys.exit(0)`: `finally` blocks and atexit functions run."""

    def __init__(self) -> None:
        super().__init__(0)


class Stop:
    def __init__(self, wanted_steps: int | None) -> None:
        self._wanted_steps = wanted_steps
        self.stopped = False

    def check(self, finished_steps: int) -> None:
        """REQUIRES: called when a step would begin. Several optimizer steps in a row are one step, so only the begin of the
        next step proves that a step has ended."""
        if self._wanted_steps is not None and finished_steps >= self._wanted_steps:
            self.stopped = True
            raise EnoughSteps()
