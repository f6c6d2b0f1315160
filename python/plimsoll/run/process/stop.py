"""`--steps K`: the run ends where the step after the last wanted one would begin."""


class EnoughSteps(SystemExit):
    """Leaves the script as `sys.exit(0)` would: `finally` blocks and atexit functions run."""

    def __init__(self) -> None:
        super().__init__(0)


class Stop:
    def __init__(self, wanted_steps: int | None) -> None:
        self._wanted_steps = wanted_steps
        self.stopped = False

    def check(self, finished_steps: int) -> None:
        """REQUIRES: called where a step would begin. Several optimizers that step one after the other are one step, so
        the end of a step is only certain here."""
        if self._wanted_steps is not None and finished_steps >= self._wanted_steps:
            self.stopped = True
            raise EnoughSteps()
