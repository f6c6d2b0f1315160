"""Whether a value read back is used for a shape in the very statement that reads it.

A light look at the source: `.item()`, `.tolist()` and `int(tensor)` inside the arguments of a call that takes sizes,
inside `range(…)` or inside a slice. A value that goes through a variable first is not followed.
"""

import ast
import functools
import linecache
from typing import Iterator, Optional

_READING_METHODS = {"item", "tolist", "numpy", "cpu"}
_READING_FUNCTIONS = {"int", "float"}
_TAKES_SIZES = {
    *("zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye"),
    *("new_zeros", "new_ones", "new_empty", "new_full", "empty_strided", "as_strided"),
    *("view", "reshape", "expand", "repeat", "tile", "resize_", "unflatten", "broadcast_to"),
    *("split", "chunk", "narrow", "tensor_split", "split_with_sizes", "topk", "repeat_interleave", "pad", "roll"),
    *("range", "multinomial", "one_hot", "unfold", "interpolate"),
}


def read_decides_shape(file: str, line: int) -> bool:
    statement = _statement(file, line)
    return statement is not None and any(_reads(part) for part in _shape_positions(statement))


def _shape_positions(statement: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and _called(node) in _TAKES_SIZES:
            yield from node.args
            yield from (keyword.value for keyword in node.keywords)
        elif isinstance(node, ast.Slice):
            yield from (part for part in (node.lower, node.upper, node.step) if part is not None)


def _reads(part: ast.AST) -> bool:
    for node in ast.walk(part):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _READING_METHODS:
                return True
            if isinstance(node.func, ast.Name) and node.func.id in _READING_FUNCTIONS:
                return True
    return False


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _statement(file: str, line: int) -> Optional[ast.stmt]:
    """The innermost statement that holds the line; of a compound one, only its head counts."""
    tree = _tree(file)
    best: Optional[ast.stmt] = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            if best is None or node.lineno >= best.lineno:
                best = node
    return None if best is None else _head(best)


def _head(statement: ast.stmt) -> ast.stmt:
    if not hasattr(statement, "body"):
        return statement
    head = type(statement)(**{name: value for name, value in ast.iter_fields(statement)})
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        if hasattr(head, name):
            setattr(head, name, [])
    return head


@functools.lru_cache(maxsize=32)
def _tree(file: str) -> Optional[ast.AST]:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
