"""Recorded answers of torch, for comparisons that would otherwise run torch for minutes.

An answer depends on the version of torch, on the program that asks and on the case, and is the same every time. So `./check`
compares with the recording, and asks torch itself in a few cases to show that the recording is right. `./check --all` asks torch in
all cases. Torch is also asked if another version than the recorded one is installed.

    PLIMSOLL_RECORD=1 pytest tests/python -m recorded     asks torch, and writes tests/golden/torchs_answers
"""

import ast
import hashlib
import io
import json
import lzma
import os
import tokenize
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any

import needs

FOLDER = needs.HOME / "tests" / "golden" / "torchs_answers"
RECORD = "PLIMSOLL_RECORD" in os.environ

Answers = dict[str, Any]


class Recorded:
    """The answers of one program. `sources`: the program and the files of ours that it imports; `packages`: those that decide answers."""

    def __init__(self, name: str, sources: Iterable[str], packages: Iterable[str] = ("torch",)) -> None:
        self.file = FOLDER / f"{name}.json.xz"
        self.sources = sum_of(sources)
        self.packages = {package: _version(package) for package in packages}

    def ask(self, cases: Iterable[str], ask: Callable[[list[str]], Answers], live: int = 2) -> Answers:
        """An answer for each case. `ask(cases)` asks torch; if there is a recording, it is called for only `live` cases."""
        cases = list(cases)
        recorded = {} if needs.EVERY_CASE or RECORD else self._read()
        if not recorded.keys() >= set(cases):
            found = ask(cases)
            if RECORD:
                self._write(found)
            return found
        sample = cases[:: max(1, len(cases) // live)][:live]
        for case, answer in ask(sample).items():
            # A live answer may hold tuples, which JSON turns into lists.
            assert json.loads(json.dumps(answer)) == recorded[case], (
                f"{self.file.name} differs from what torch answers now: {case}"
            )
        return {case: recorded[case] for case in cases}

    def _read(self) -> Answers:
        if not self.file.exists():
            return {}
        with lzma.open(self.file, "rt") as file:
            found = json.load(file)
        if found["packages"] != self.packages:
            return {}
        assert found["sources"] == self.sources, (
            f"{self.file.name} was recorded by another version of its program: see {__name__}.py"
        )
        return found["answers"]

    def _write(self, answers: Answers) -> None:
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(
            {"packages": self.packages, "sources": self.sources, "answers": answers}, separators=(",", ":")
        )
        with lzma.open(self.file, "wt", preset=9) as file:
            file.write(text)


def sum_of(sources: Iterable[str]) -> str:
    """A checksum of the code of these files of tests/python/programs."""
    code = [code_of((needs.PYTHON_PROGRAMS / source).read_text(encoding="utf-8")) for source in sources]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def code_of(text: str) -> str:
    """The text without comments, docstrings and empty lines: these change no answer."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            docstring = node.body[0]
            assert docstring.end_lineno is not None
            lines[docstring.lineno - 1 : docstring.end_lineno] = [""] * (docstring.end_lineno - docstring.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
