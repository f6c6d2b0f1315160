"""A validator for the part of JSON Schema 2020-12 that docs/schema uses."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "schema"

KNOWN = {"$schema", "title", "description", "$defs"} | {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "$ref", "anyOf", "minimum",
}  # fmt: skip
TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    # 1.0 is an integer for JSON Schema; ours are written without a point, and read so.
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


@functools.cache
def schema_of(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / name).read_text())


def same(a: Any, b: Any) -> bool:
    """Python takes True for 1."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def resolve(reference: str, root: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a `$ref` names, and the document that it is in."""
    file, _, pointer = reference.partition("#")
    found = root = schema_of(file) if file else root
    for part in pointer.split("/")[1:]:
        found = found[part]
    return found, root


def defects(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$") -> Iterator[str]:
    """The part of JSON Schema 2020-12 that ours use; a keyword that it does not know is an error of the test."""
    assert set(schema) <= KNOWN, f"{path}: keywords that this validator does not know: {set(schema) - KNOWN}"
    if "$ref" in schema:
        yield from defects(value, *resolve(schema["$ref"], root), path)
    if "anyOf" in schema and all(any(defects(value, one, root, path)) for one in schema["anyOf"]):
        # The alternative beside null is the one to complain about.
        yield from defects(value, schema["anyOf"][0], root, path)
    if "const" in schema and not same(value, schema["const"]):
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(TYPES[one](value) for one in types):
            yield f"{path}: {value!r} is not of type {' or '.join(types)}"
    if "minimum" in schema and TYPES["number"](value) and value < schema["minimum"]:
        yield f"{path}: {value!r} is below {schema['minimum']}"
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from defects(item, schema["items"], root, f"{path}[{index}]")
    if isinstance(value, dict):
        yield from object_defects(value, schema, root, path)


def object_defects(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}: '{name}' is missing"
    properties = schema.get("properties", {})
    for name, item in value.items():
        if name in properties:
            yield from defects(item, properties[name], root, f"{path}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{path}: '{name}' is not in the schema"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from defects(item, schema["additionalProperties"], root, f"{path}.{name}")


def check(value: Any, command: str) -> list:
    schema = schema_of(f"{command}.schema.json")
    return list(defects(value, schema, schema))
