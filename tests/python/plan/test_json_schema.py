"""The documents of the commands match the schemas of docs/schema, and the schemas refuse wrong documents."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from json_schema import check, schema, schema_of
from needs import HOME

from plimsoll import document_fields

OUTCOMES = ["fits", "out of memory", "too little left", "script failed", "stopped", "no verdict", "not run"]
GOLDEN = HOME / "tests" / "report" / "golden"

DOCUMENTS = {
    "plan": ["plan_fits", "plan_does_not_fit", "plan_hsdp_offload", "plan_empty"],
    "run": ["fits", "does_not_fit", "with_warnings"],
    "sweep": ["sweep"],
    "fit": ["fit"],
    "compare": ["compare", "compare_unattributed", "compare_run"],
    "explain": ["explain"],
}


def golden(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def objects(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for name, part in schema.items():
            yield from objects(part, f"{path}/{name}")
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from objects(part, f"{path}/{index}")


def fields(document: Any, free: bool = False) -> Iterator[tuple[dict[str, Any], str]]:
    """Every field that a schema names, with its object. `free`: the names of this object are the user's."""
    if isinstance(document, dict):
        for name, value in document.items():
            if not free:
                yield document, name
            yield from fields(value, name in {"job", "categories", "at_peak", "phases"} and isinstance(value, dict))
    elif isinstance(document, list):
        for item in document:
            yield from fields(item)


def shortened(document: Any) -> Any:
    """The document with at most two items in each list."""
    if isinstance(document, dict):
        return {name: shortened(value) for name, value in document.items()}
    return [shortened(item) for item in document[:2]] if isinstance(document, list) else document


@pytest.mark.parametrize("command, name", [(command, name) for command, listed in DOCUMENTS.items() for name in listed])
def test_golden_documents_match_their_schema(command, name):
    assert check(golden(name), command) == []


def test_the_schema_of_all_documents_refers_to_each_of_them():
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert [one["$ref"] for one in schema()["oneOf"]] == [f"#/$defs/{command}" for command in DOCUMENTS]


def test_every_golden_document_is_checked():
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == sorted(sum(DOCUMENTS.values(), []))


@pytest.mark.parametrize("command", DOCUMENTS)
def test_schemas_are_strict(command):
    schema = schema_of(command)
    for path, part in objects(schema, command):
        if "properties" in part:
            assert part["additionalProperties"] is False, path
            assert part["required"] == list(part["properties"]), path
        else:
            assert isinstance(part["additionalProperties"], dict), path


@pytest.mark.parametrize("command", DOCUMENTS)
def test_a_document_matches_the_schema_of_its_command_only(command):
    for other in DOCUMENTS:
        assert bool(check(golden(DOCUMENTS[command][0]), other)) == (other != command)


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda d: d.update(version=1), "$.version: 2 was expected"),
        (lambda d: d.update(version=True), "$.version: 2 was expected"),
        (lambda d: d.update(fits=1), "$.fits: 1 is not of type 'boolean', 'null'"),
        (lambda d: d.update(extra=1), "$: Additional properties are not allowed ('extra' was unexpected)"),
        (lambda d: d.pop("ops"), "$: 'ops' is a required property"),
        (lambda d: d["peak"].update(active_bytes=-1), "$.peak.active_bytes: -1 is less than the minimum of 0"),
        (lambda d: d["peak"].update(active_bytes=1.5), "$.peak.active_bytes: 1.5 is not of type 'integer'"),
        (lambda d: d["peak"].update(phase=7), "$.peak.phase: 7 is not of type 'string', 'null'"),
        (lambda d: d["peak"]["categories"].update(Temp="1"), "$.peak.categories.Temp: '1' is not of type 'integer'"),
        (lambda d: d["job"].update(gpus=[8]), "$.job.gpus: [8] is not of type 'string', 'integer', 'number', 'boolean', 'null'"),
        (lambda d: d["steps"][0]["phases"]["forward"].pop("active_end_bytes"), "$.steps[0].phases.forward: 'active_end_bytes' is a required property"),
        (lambda d: d["modules"][1].update(name=None), "$.modules[1].name: None is not of type 'string'"),
        (lambda d: d["oom"].pop("message"), "$.oom: 'message' is a required property"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_refused(change, said):
    document = golden("plan_does_not_fit")
    change(document)
    assert check(document, "plan") == [said]


def test_a_document_inside_another_is_checked_too():
    document = golden("fit")
    document["at_limit"]["peak"]["segments"] = None
    assert check(document, "fit") == ["$.at_limit.peak.segments: None is not of type 'integer'"]
    document = golden("fit")
    document["at_limit"]["verdict"]["outcome"] = "maybe"
    assert check(document, "fit") == [f"$.at_limit.verdict.outcome: 'maybe' is not one of {OUTCOMES}"]


@pytest.mark.parametrize("command", DOCUMENTS)
def test_no_field_of_a_schema_may_be_missing_or_have_another_type(command):
    document = shortened(golden("plan_does_not_fit" if command == "plan" else DOCUMENTS[command][-1]))
    found = list(fields(document))
    assert len(found) > 10
    for owner, name in found:
        kept = dict(owner)
        owner[name] = object()
        assert check(document, command), name
        del owner[name]
        assert check(document, command), name
        owner.clear()
        owner.update(kept)
    assert check(document, command) == []


# -- one place for each name -----------------------------------------------------------------------------------------------

# torch's statistics have these names too.
NAMES_OF_TORCH = {"active_bytes", "allocated_bytes", "reserved_bytes"}
# A GPU profile has this name too.
NAMES_OF_PROFILES = {"memory_bytes"}


def names_of_bytes() -> set[str]:
    names: set[str] = set()
    for definition in schema()["$defs"].values():
        names.update(name for name in definition["properties"] if name.endswith("_bytes"))
    return names


def strings_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_a_name_of_bytes_stands_in_one_cpp_file_and_at_most_one_python_file():
    names = names_of_bytes()
    assert len(names) > 20
    cpp: dict[str, set[str]] = {name: set() for name in names}
    for file in (HOME / "src" / "plimsoll").rglob("*"):
        if file.suffix in (".h", ".cpp") and "pretend" not in file.parts:
            for name in names & set(re.findall(r'"(\w+_bytes)\\?"', file.read_text())):
                cpp[name].add(file.name)
    assert cpp == dict.fromkeys(names, {"fields.h"})
    others = names - NAMES_OF_TORCH - NAMES_OF_PROFILES
    for file in (HOME / "python" / "plimsoll").rglob("*.py"):
        if file.name != "document_fields.py":
            assert others.isdisjoint(strings_of(file)), file


def test_the_fields_that_python_knows_are_those_of_the_schema():
    definitions = {name: definition["properties"].keys() for name, definition in schema()["$defs"].items()}
    assert document_fields.VERSION == 2
    for name in ("gpu", "verdict", "peak", "phase", "step", "module", "oom", "other_device"):
        assert set(getattr(document_fields, name.upper()).values()) == definitions[name], name
    assert set(document_fields.REPORT.values()) == definitions["plan"] | definitions["run"]
