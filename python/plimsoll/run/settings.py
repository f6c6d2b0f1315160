"""The settings from the command: the variable PLIMSOLL_RUN, as JSON."""

import json
import os
from dataclasses import dataclass

VARIABLE = "PLIMSOLL_RUN"


@dataclass(frozen=True)
class Settings:
    record_dir: str
    steps: int | None = None
    top: int = 10
    snapshot: str | None = None
    progress: bool = False
    categories: bool = True
    depth: int = 2
    main_pid: int | None = None
    # For development on a real GPU, without a control library. The device book is then the reserved book.
    without_control: bool = False

    @property
    def is_main(self) -> bool:
        return self.main_pid == os.getpid()


def read() -> Settings | None:
    """The settings of this process. None outside of `plimsoll run`."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    known = Settings.__dataclass_fields__
    return Settings(**{name: value for name, value in json.loads(text).items() if name in known})


def claim_main() -> Settings:
    """Makes this process the main one, for itself and its child processes."""
    values = json.loads(os.environ[VARIABLE])
    values["main_pid"] = os.getpid()
    os.environ[VARIABLE] = json.dumps(values)
    settings = read()
    assert settings is not None
    return settings


def number_in_environment(variable: str, otherwise: int) -> int:
    try:
        return int(os.environ.get(variable, ""))
    except ValueError:
        return otherwise
