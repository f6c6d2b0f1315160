"""Finds out whether a read-back decides a shape, in its own statement or in a later statement of the same function.

A simple analysis of the source. It follows the value from the statement that reads it (`.item()`, `.tolist()`, `int(tensor)`,
…) through names, attributes, elements and arithmetic to a size: an argument of a call that takes sizes, `range(…)` or a slice.
It does not follow arguments and results of other functions, or the branch that a condition takes.
"""

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence

from plimsoll.run.values.value_flow import COMPREHENSIONS, Places, Values, called, is_free, place

_TAKES_SIZES = {
    *("zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye"),
    *("new_zeros", "new_ones", "new_empty", "new_full", "empty_strided", "as_strided"),
    *("view", "reshape", "expand", "repeat", "tile", "resize_", "unflatten", "broadcast_to"),
    *("split", "chunk", "narrow", "tensor_split", "split_with_sizes", "topk", "repeat_interleave", "pad"),
    *("range", "slice", "multinomial", "one_hot", "unfold", "interpolate", "tril_indices", "triu_indices"),
    *("Linear", "Embedding", "EmbeddingBag", "LayerNorm"),
}
_TAKES_DATA_FIRST = {
    *("as_strided", "reshape", "tile", "unflatten", "broadcast_to", "split", "chunk", "narrow", "tensor_split"),
    *("split_with_sizes", "topk", "repeat_interleave", "pad", "multinomial", "one_hot", "unfold", "interpolate"),
}
_NO_SIZES = {"fill_value", "value", "dtype", "device", "layout", "generator", "requires_grad", "out"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # TryStar: since Python 3.11


@functools.lru_cache(maxsize=4096)
def read_decides_shape(file: str, line: int) -> bool:
    """Never raises. False if the source cannot be analyzed."""
    try:
        tree = _tree(file)
        return tree is not None and _Walk(line).decides(_scope(tree, line))
    except Exception:
        return False


@functools.lru_cache(maxsize=32)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _scope(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The body of the innermost function that contains the line, or else the module's body."""
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and _is_within(node, line)]
    return max(functions, key=lambda node: node.lineno).body if functions else tree.body


def _is_within(function: ast.stmt, line: int) -> bool:
    return _covers(function, line) and not _head_holds(function, line)


def _head_holds(statement: ast.stmt, line: int) -> bool:
    """For a compound statement, only its head counts."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return _covers(statement, line)
    first = body[0].lineno if isinstance(body[0], ast.stmt) else body[0].pattern.lineno
    return statement.lineno <= line <= max(statement.lineno, first - 1)


class _Walk:
    """Walks through a function's statements in order, with the places that have the value which `line` reads."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._found = False

    def decides(self, body: Sequence[ast.stmt]) -> bool:
        self._run(body, frozenset())
        return self._found

    def _run(self, body: Sequence[ast.stmt], places: Places) -> Places:
        for statement in body:
            if self._found:
                break
            if (places or _covers(statement, self._line)) and not isinstance(statement, _FUNCTIONS):
                places = self._statement(statement, places)
        return places

    def _statement(self, statement: ast.stmt, places: Places) -> Places:
        values = Values(places, _head_holds(statement, self._line))
        parts = [part for part in ast.iter_child_nodes(statement) if isinstance(part, (ast.expr, ast.withitem))]
        for node in (node for part in parts for node in ast.walk(part) if isinstance(node, ast.NamedExpr)):
            values.places = values.assigned([node.target], node.value)
        if any(_decides(part, values) for part in parts):
            self._found = True
            return places
        if isinstance(statement, ast.Assign):
            return values.assigned(statement.targets, statement.value)
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            return values.assigned([statement.target], statement.value)
        if isinstance(statement, ast.AugAssign):
            name = place(statement.target)
            return values.places | {name} if name is not None and values.carries(statement.value) else values.places
        if isinstance(statement, ast.Expr):
            return values.put_in(statement.value)
        if isinstance(statement, ast.Delete):
            return values.assigned(statement.targets, None)
        return self._compound(statement, values)

    def _compound(self, statement: ast.stmt, values: Values) -> Places:
        places = values.places
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            return self._loop(statement.body, statement.orelse, values.iterated(statement.target, statement.iter))
        if isinstance(statement, ast.While):
            return self._loop(statement.body, statement.orelse, places)
        if isinstance(statement, ast.If):
            return self._run(statement.body, places) | self._run(statement.orelse, places)
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.ClassDef)):
            return self._run(statement.body, places)
        if isinstance(statement, ast.Match):
            return places.union(*(self._run(case.body, places) for case in statement.cases))
        if isinstance(statement, _TRIES):
            tried = self._run(statement.body, places)
            caught = [self._run(handler.body, places | tried) for handler in statement.handlers]
            return self._run(statement.finalbody, self._run(statement.orelse, tried).union(*caught))
        return places

    def _loop(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], places: Places) -> Places:
        """Repeats the body until no further place gets the value."""
        while not self._found:
            after = places | self._run(body, places)
            if after == places:
                break
            places = after
        return self._run(orelse, places)


def _decides(node: ast.AST, values: Values) -> bool:
    if isinstance(node, ast.Call) and called(node) in _TAKES_SIZES:
        if any(values.carries(part, through_calls=True) for part in _sizes(node)):
            return True
    elif isinstance(node, ast.Slice):
        bounds = (node.lower, node.upper, node.step)
        if any(values.carries(part, through_calls=True) for part in bounds if part is not None):
            return True
    elif isinstance(node, COMPREHENSIONS):
        values = values.within(node)
    return any(_decides(child, values) for child in ast.iter_child_nodes(node))


def _sizes(call: ast.Call) -> Iterator[ast.AST]:
    name = called(call)
    data = 1 if name in _TAKES_DATA_FIRST and is_free(call) else 0
    yield from call.args[data : 1 if name in ("full", "new_full") else None]
    yield from (keyword.value for keyword in call.keywords if keyword.arg not in _NO_SIZES)
