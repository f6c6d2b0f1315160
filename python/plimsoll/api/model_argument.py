"""The `model` of a plan: a name, a path, or a configuration that is written for the command to read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class HasToDict(Protocol):
    """What a configuration of transformers is."""

    def to_dict(self) -> dict[str, Any]: ...


Model = str | os.PathLike[str] | Mapping[str, Any] | HasToDict


@dataclass(frozen=True)
class ModelArgument:
    """argument: what the command is given. label: what people call it."""

    argument: str
    label: str


def resolve(model: Model, folder: Path) -> ModelArgument:
    """A configuration goes into `folder`, which the command must then be started in.

    Raises TypeError where it is none of what a model may be, and ValueError where it cannot be written as JSON.
    """
    if isinstance(model, str):
        return ModelArgument(model, model)
    if isinstance(model, os.PathLike):
        path = os.fspath(model)
        # A name without a slash would be looked up among the presets first.
        return ModelArgument(path if os.sep in path else os.path.join(".", path), path)
    if isinstance(model, Mapping):
        config = dict(model)
    elif isinstance(model, HasToDict) and not isinstance(model, type):
        config = dict(model.to_dict())
    else:
        raise TypeError(
            "model must be a name of `plimsoll models`, the path of a config.json, a dict like one, or an object with "
            f"to_dict() (a transformers configuration), found {type(model).__name__}"
        )
    try:
        text = json.dumps(config)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model's configuration cannot be written as JSON: {error}") from None
    (folder / "config.json").write_text(text)
    return ModelArgument("config.json", str(config.get("_name_or_path") or config.get("model_type") or "config.json"))
