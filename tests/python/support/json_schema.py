"""Documents of the commands against the JSON Schemas of docs/schema."""

import functools
import json
from typing import Any

import needs
import pytest

jsonschema = pytest.importorskip("jsonschema")
referencing = pytest.importorskip("referencing")

SCHEMAS = needs.HOME / "docs" / "schema"


@functools.cache
def schema_of(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / name).read_text())


@functools.cache
def _registry() -> Any:
    files = sorted(path.name for path in SCHEMAS.glob("*.json"))
    return referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(schema_of(name))) for name in files
    )


def check(document: Any, command: str) -> list[str]:
    """The errors of a document against the schema of this command, as `path: message`."""
    validator = jsonschema.Draft202012Validator(schema_of(f"{command}.schema.json"), registry=_registry())
    return [f"{error.json_path}: {error.message}" for error in map(_innermost, validator.iter_errors(document))]


def _innermost(error: Any) -> Any:
    """Of `anyOf`, the error of the first alternative: the second alternative is null."""
    while error.context:
        error = error.context[0]
    return error
