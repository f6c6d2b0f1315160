"""What went wrong in the observer itself: named in the record, never thrown into the user's script."""

from collections.abc import Callable
from typing import Any, TypeVar

_MOST = 10

Result = TypeVar("Result")


class Defects:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        """Each once, and not many: what fails once fails in every step."""
        if text not in self.texts and len(self.texts) < _MOST:
            self.texts.append(text)

    def failed(self, part: str, error: BaseException) -> None:
        self.note(f"{part}: {error!r}")

    def guarded(self, otherwise: Result, part: Callable[..., Result], *args: Any) -> Result:
        """What one part failed to see must not cost what the others saw. `EnoughSteps` passes: it is no Exception."""
        try:
            return part(*args)
        except Exception as error:
            self.failed(getattr(part, "__qualname__", str(part)), error)
            return otherwise
