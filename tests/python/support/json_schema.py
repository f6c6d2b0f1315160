"""Documents of the commands against the JSON Schema in docs/schema."""

import functools
import json
from typing import Any

import needs
import pytest

jsonschema = pytest.importorskip("jsonschema")

FILE = needs.HOME / "docs" / "schema" / "report.schema.json"


@functools.cache
def schema() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def schema_of(command: str) -> dict[str, Any]:
    return schema()["$defs"][command]


def check(document: Any, command: str) -> list[str]:
    """The defects of a document of this command, as `path: message`."""
    one = {"$schema": schema()["$schema"], "$ref": f"#/$defs/{command}", "$defs": schema()["$defs"]}
    errors = jsonschema.Draft202012Validator(one).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in map(_innermost, errors)]


def _innermost(error: Any) -> Any:
    """Of `anyOf`, the error of the first alternative: the second alternative is null."""
    while error.context:
        error = error.context[0]
    return error
