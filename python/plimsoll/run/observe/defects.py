"""Failures of the observer itself: named in the record, never raised into the script."""

from collections.abc import Callable
from typing import Any, TypeVar

_MAX_TEXTS = 10

Result = TypeVar("Result")
Otherwise = TypeVar("Otherwise")


class Defects:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        """Keeps each text once, and the first few: a part that fails usually fails in every step."""
        if text not in self.texts and len(self.texts) < _MAX_TEXTS:
            self.texts.append(text)

    def failed(self, part: str, error: BaseException) -> None:
        self.note(f"{part}: {error!r}")

    def attempt(self, part: Callable[..., object], *args: Any) -> None:
        """Calls the part. An exception becomes a defect, so the other parts go on. `EnoughSteps` passes: it is a SystemExit."""
        self.attempt_or(None, part, *args)

    def attempt_or(self, otherwise: Otherwise, part: Callable[..., Result], *args: Any) -> Result | Otherwise:
        """The same, with the part's result; `otherwise` after a failure."""
        try:
            return part(*args)
        except Exception as error:
            self.failed(getattr(part, "__qualname__", str(part)), error)
            return otherwise
