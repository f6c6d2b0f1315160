"""The package's stubs equal the signatures of the native part. scripts/lint.sh runs mypy."""

import ast
import json
import os
import re
import subprocess
import sys

import needs
import pytest

PACKAGE = needs.HOME / "python" / "plimsoll"


def test_the_package_declares_that_it_has_types():
    assert (PACKAGE / "py.typed").exists()


SIMPLE = {"None", "bool", "int", "str", "torch.Tensor", "torch.device", "MemoryUse", "Stage", "str | None", "set[str]"}
CONTAINERS = {"dict", "list"}


def type_of(annotation):
    """A type in the form that both sides use; None if one side has no full type."""
    if annotation is None:
        return None
    text = (
        ast.unparse(annotation).replace("plimsoll._C.", "").replace("typing.SupportsInt | typing.SupportsIndex", "int")
    )
    text = re.sub(r"Optional\[(.*)\]", r"\1 | None", text).replace("Set[", "set[")
    text = "dict" if text == "PlainSnapshot" else text
    outer = text.partition("[")[0].lower()
    return text if text in SIMPLE else outer if outer in CONTAINERS else None


def signature(function):
    """([[name, type, has a default], …], type of the result). A parameter without a name in the native part has none here."""
    by_place = [(None, one) for one in function.args.posonlyargs]
    by_name = [(one.arg, one) for one in function.args.args]
    parameters = [(name, one) for name, one in by_place + by_name if one.arg != "self"]
    parameters = [(None if name and re.fullmatch(r"arg\d+", name) else name, one) for name, one in parameters]
    first_default = len(parameters) - len(function.args.defaults)
    found = [[name, type_of(one.annotation), place >= first_default] for place, (name, one) in enumerate(parameters)]
    return [found, type_of(function.returns)]


def differences(stub, native):
    """Whether two signatures agree; an unknown type agrees with any type."""
    alike = [[one[0], one[2]] for one in stub[0]] == [[one[0], one[2]] for one in native[0]]
    pairs = [(one[1], other[1]) for one, other in zip(stub[0], native[0])] + [(stub[1], native[1])]
    return [] if alike and all(None in pair or len(set(pair)) == 1 for pair in pairs) else [(stub, native)]


def functions_of(body, prefix=""):
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            is_property = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)
            found[prefix + node.name] = None if is_property else signature(node)
        elif isinstance(node, ast.AnnAssign) and prefix:
            found[prefix + node.target.id] = None
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name] = None
            found.update(functions_of(node.body, f"{node.name}."))
    return found


LOOK = """
import json
from plimsoll import native
found = {}
def look(owner, prefix=""):
    for name, value in vars(owner).items():
        if name.startswith("_") and name != "__init__":
            continue
        line = (getattr(value, "__doc__", None) or "").partition("\\n")[0]
        found[prefix + name] = line if callable(value) and "->" in line else None
        if isinstance(value, type):
            found[prefix + name] = None
            look(value, f"{name}.")
look(native._C)
print(json.dumps(found))
"""
# Plain C functions without a pybind11 signature, because each module call uses them.
BARE = {"before_forward", "after_forward", "call_forward"}
SCOPES = {"Recomputation", "StateCreation", "GradientBuckets"}  # their methods are declared in _Scope
MEMBERS = {"MemoryUse", "Stage"}  # only the native part creates them


@pytest.mark.skipif(needs.why_no_package() is not None, reason=str(needs.why_no_package()))
def test_the_stubs_equal_the_signatures_of_the_native_part():
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": str(needs.HOME / "python")}
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    native = json.loads(done.stdout)
    for name in [f"{kind}.__init__" for kind in SCOPES | MEMBERS]:
        del native[name]
    stubs = functions_of(ast.parse((PACKAGE / "_C.pyi").read_text()).body)
    assert stubs.keys() == native.keys()
    assert {name for name, line in native.items() if line is None and stubs[name] is not None} == BARE
    for name, line in native.items():
        if line is not None:
            assert not differences(stubs[name], signature(ast.parse(f"def {line}: ...").body[0])), name


DOCTESTS = """
import doctest, importlib, sys
for name in sys.argv[1:]:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted and not result.failed, (name, result)
"""


@pytest.mark.skipif(needs.why_no_package() is not None, reason=str(needs.why_no_package()))
def test_the_docstring_examples_run():
    environment = {**os.environ, **needs.pretend_gpu(), "PYTHONPATH": str(needs.HOME / "python")}
    modules = [f"plimsoll.trackers.{name}" for name in ("mem_tracker", "fsdp_mem_tracker", "mod_tracker")]
    command = [sys.executable, "-c", DOCTESTS, *modules]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
