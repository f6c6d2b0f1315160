"""Steps and phases, derived from the events of a training loop. Does not use torch.

    before ─► [other] forward ─► backward ─► other (clipping) ─► optimizer ─┐ one step
                  ▲                                                         │
                  └────── work after the optimizer opens the next step ◄────┘

A step ends when its optimizer step ends. If another optimizer step follows without a forward or backward, it belongs to the
same step. So the windows after an optimizer step are kept in `_tail` until the next event decides.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.run.observe.peaks import Window, Windows

FORWARD, BACKWARD, OPTIMIZER, OTHER = "forward", "backward", "optimizer", "other"

_KEPT_FIRST, _KEPT_LAST = 64, 64  # of the finished steps of a long run

Phases = dict[str, Windows]


def _join(mine: Windows, windows: Windows) -> None:
    for device, window in windows.items():
        mine[device] = mine[device].then(window) if device in mine else window


@dataclass
class Highest:
    """The highest active bytes of a device and their moment; of equal values the first."""

    active_peak: int = -1
    step: int | None = None
    phase: str = OTHER

    def see(self, step: int | None, phase: str, window: Window) -> None:
        if window.active > self.active_peak:
            self.active_peak, self.step, self.phase = window.active, step, phase


@dataclass(eq=False)
class Timeline:
    """Cuts the run at the borders of phases. `_cut()` returns the window of each device since the last cut.

    Thread-safe: autograd's threads and several training threads may report events.
    """

    _cut: Callable[[], Windows]
    _on_step: Callable[[], None]
    _check_stop: Callable[[int], None]

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forgets all events. For a forked child, in which a thread of the parent may have held the lock."""
        self._lock = threading.RLock()
        self.before: Phases = {}
        self.after: Phases = {}
        self.finished: list[Phases] = []
        self._numbers: list[int] = []  # step numbers of the first entries of `finished`, once steps were dropped
        self.finished_count = 0
        self.open: Phases | None = None
        self.highest: dict[int, Highest] = {}
        self.phase = OTHER
        self.work = 0  # number of forwards, backwards and optimizer steps that began
        self._backward_depth = 0
        self._optimizer_depth = 0
        self._optimizer_has_closure = False
        self._stepped = False  # an optimizer has stepped in the open step, and no new work began
        self._stepped_in_backward = False
        self._tail: Windows = {}

    @property
    def step(self) -> int | None:
        """The number of the open step, from 0; None before the first and between two."""
        return self.finished_count if self.open is not None and not self._stepped else None

    @property
    def done_steps(self) -> int:
        return self.finished_count + (1 if self._stepped else 0)

    @property
    def last_phase_was_backward(self) -> bool:
        return self.phase == OTHER and BACKWARD in (self.open or {}) and not self._stepped

    @property
    def in_backward(self) -> bool:
        return self._backward_depth > 0

    @property
    def outermost_backward(self) -> bool:
        return self._backward_depth == 1

    # -- events --------------------------------------------------------------------------------------------------------

    def forward_begins(self) -> None:
        with self._lock:
            self.work += 1
            if self._backward_depth or self.phase == FORWARD:
                return
            if self._optimizer_depth and not self._optimizer_has_closure:
                self._optimizer_depth = 0  # its step raised, and the script continued
            self._begin_work(FORWARD)

    def backward_begins(self) -> None:
        with self._lock:
            self.work += 1
            if self._backward_depth == 0:
                self._begin_work(BACKWARD)
            self._backward_depth += 1

    def backward_ends(self) -> bool:
        """True for the outermost backward."""
        with self._lock:
            self._backward_depth -= 1
            if self._backward_depth:
                return False
            self._enter(OPTIMIZER if self._optimizer_depth else OTHER)
            if self._stepped_in_backward:
                self._stepped_in_backward = False
                self._step_done()
            return True

    def optimizer_begins(self, has_closure: bool = False) -> None:
        with self._lock:
            self.work += 1
            if self._backward_depth:
                self._stepped_in_backward = True
                return
            if self._optimizer_depth and not self._optimizer_has_closure and self.phase != OPTIMIZER:
                self._optimizer_depth = 0
            self._optimizer_depth += 1
            if self._optimizer_depth > 1:
                return
            self._optimizer_has_closure = has_closure
            if self._stepped and not has_closure:  # a further optimizer of the same step
                self._flush()
                self._file_tail(self._opened(), self.finished_count)
                self._stepped, self.phase = False, OPTIMIZER
            else:
                self._begin_work(OPTIMIZER)  # a closure runs a forward, so it opens a step

    def expect_optimizer(self) -> None:
        """The entered compiled code contains an optimizer step, at an unknown place."""
        with self._lock:
            if not self._optimizer_depth and not self._backward_depth:
                self._optimizer_depth, self._optimizer_has_closure = 1, True

    def optimizer_ends(self) -> None:
        with self._lock:
            if self._backward_depth or not self._optimizer_depth:
                return
            self._optimizer_depth -= 1
            if self._optimizer_depth == 0:
                self._enter(OTHER)
                self._step_done()

    def nothing_ran_yet(self) -> None:
        """Discards the open step: it ran before there was a device. A finished step stays."""
        with self._lock:
            ran = self.finished_count or self._stepped or self._backward_depth or self._optimizer_depth
            if not ran:
                self.open, self.phase, self.work = None, OTHER, 0

    def close(self) -> None:
        """The run is over: files the windows since the last border."""
        with self._lock:
            self._flush()
            if self._stepped:
                self._finish_step()
                self._file_tail(self.after, None)

    def flush(self) -> None:
        """Files the windows up to now under the current phase."""
        with self._lock:
            self._flush()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _opened(self) -> Phases:
        if self.open is None:
            self.open = {}
        return self.open

    def _begin_work(self, phase: str) -> None:
        """A forward, a backward or an optimizer step begins. It opens a step if none is open."""
        if self.open is not None and not self._stepped:
            self._enter(phase)
            return
        self._check_stop(self.done_steps)
        self._flush()
        if self._stepped:
            self._finish_step()
        self.open, self.phase = {}, phase
        if self._tail:
            self._file_tail(self.open, self.finished_count)

    def _finish_step(self) -> None:
        self.finished.append(self._opened())
        self.finished_count += 1
        self.open, self._stepped = None, False
        self._thin_out()

    def _step_done(self) -> None:
        self._stepped = True
        self._on_step()

    def _enter(self, phase: str) -> None:
        self._flush()
        self.phase = phase

    def _flush(self) -> None:
        windows = self._cut()
        if not windows:
            return
        if self._stepped:
            _join(self._tail, windows)
        elif self.open is None:
            self._file(self.before, None, OTHER, windows)
        else:
            self._file(self.open, self.finished_count, self.phase, windows)

    def _file(self, phases: Phases, step: int | None, phase: str, windows: Windows) -> None:
        _join(phases.setdefault(phase, {}), windows)
        for device, window in windows.items():
            self.highest.setdefault(device, Highest()).see(step, phase, window)

    def _file_tail(self, phases: Phases, step: int | None) -> None:
        self._file(phases, step, OTHER, self._tail)
        self._tail = {}

    def _thin_out(self) -> None:
        """Bounds the memory of a long run: keeps the first steps, the last steps, and the steps with a device's peak."""
        if len(self.finished) <= 2 * (_KEPT_FIRST + _KEPT_LAST):
            return
        numbers = self.finished_numbers()
        peaks = {highest.step for highest in self.highest.values()}
        last = len(numbers) - _KEPT_LAST
        kept = [
            (number, step)
            for index, (number, step) in enumerate(zip(numbers, self.finished))
            if index < _KEPT_FIRST or index >= last or number in peaks
        ]
        self._numbers = [number for number, _ in kept]
        self.finished = [step for _, step in kept]

    def finished_numbers(self) -> list[int]:
        """The step numbers of `finished`, without gaps unless the run is very long."""
        missing = len(self.finished) - len(self._numbers)
        return self._numbers + list(range(self.finished_count - missing, self.finished_count))

    def numbered_steps(self) -> list[tuple[int, Phases]]:
        """The finished steps, and the open step if it has windows."""
        with self._lock:
            steps = list(zip(self.finished_numbers(), self.finished))
            if self.open:
                steps.append((self.finished_count, self.open))
            return steps
