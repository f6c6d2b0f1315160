"""The `model` of a plan: a name, a path, or a configuration that is written to a file for the command."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class HasToDict(Protocol):
    """A configuration of transformers."""

    def to_dict(self) -> dict[str, Any]: ...


Model = str | os.PathLike[str] | Mapping[str, Any] | HasToDict


@dataclass(frozen=True)
class ModelArgument:
    """argument: for the command line. label: for the user."""

    argument: str
    label: str


def resolve(model: Model, folder: Path) -> ModelArgument:
    """Writes a configuration to `folder`, in which the command must then start.

    Raises TypeError for a model of another type, and ValueError if it cannot be written as JSON.
    """
    if isinstance(model, str):
        return ModelArgument(model, model)
    if isinstance(model, os.PathLike):
        path = os.fspath(model)
        # The command would first search a name without a slash among the presets.
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
