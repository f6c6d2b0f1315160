"""What the command asked for: the variable PLIMSOLL_RUN, as JSON."""

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
    # Development on a GPU that has no control library: the device book is then what the allocator reserved.
    without_control: bool = False

    @property
    def is_main(self) -> bool:
        return self.main_pid == os.getpid()


def read() -> Settings | None:
    """The settings of this process, or None outside of `plimsoll run`."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    known = Settings.__dataclass_fields__
    return Settings(**{name: value for name, value in json.loads(text).items() if name in known})


def claim_main() -> Settings:
    """Makes this process the main one; processes that it starts will know that they are not."""
    values = json.loads(os.environ[VARIABLE])
    values["main_pid"] = os.getpid()
    os.environ[VARIABLE] = json.dumps(values)
    settings = read()
    assert settings is not None
    return settings
