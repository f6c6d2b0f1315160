"""Which expressions carry a value that a statement read, and which places (`n`, `self.n`, `sizes[0]`) they assign the value to.

Expressions computed from a value carry it (arithmetic, `min`, an element of a list, a method). Metadata of a tensor (`shape`, `len`)
does not carry it.
"""

import ast
from collections.abc import Iterator, Sequence

Places = frozenset[str]
_Pair = tuple[ast.AST, ast.AST | None]  # a target and its value
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)

_READING_METHODS = {"item", "tolist", "numpy", "cpu"}
_READING_FUNCTIONS = {"int", "float"}
_METADATA = {
    *("shape", "size", "ndim", "dim", "ndimension", "numel", "stride", "dtype", "device", "layout", "nbytes"),
    *("itemsize", "element_size", "is_cuda", "requires_grad", "grad_fn", "__len__"),
}
_NO_VALUE = {"len", "isinstance", "type", "id", "hasattr", "callable"}
_COMPUTES = {
    *("int", "float", "bool", "abs", "round", "min", "max", "sum", "pow", "divmod", "sorted", "reversed"),
    *("list", "tuple", "set", "dict", "zip", "enumerate", "map", "filter", "next", "iter", "range", "slice"),
    *("ceil", "floor", "prod", "Size"),
}
_MODULES = {"torch", "math", "np", "numpy", "operator", "itertools", "functools", "F"}
_PUTS_IN = {"append", "extend", "insert"}


def place(target: ast.AST) -> str | None:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        base = place(target.value)
        if base is not None and isinstance(target, ast.Attribute):
            return f"{base}.{target.attr}"
        if base is not None and isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            return f"{base}[{target.slice.value!r}]"
    return None


def called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_free(call: ast.Call) -> bool:
    """True for a function or a module's function: its data is its first argument, not an object before the dot."""
    base = call.func
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and (base is call.func or base.id in _MODULES)


def _reads(call: ast.Call) -> bool:
    names = _READING_METHODS if isinstance(call.func, ast.Attribute) else _READING_FUNCTIONS
    return called(call) in names


class Values:
    """The expressions of one statement that carry the value. `reading`: this statement reads the value."""

    def __init__(self, places: Places, reading: bool) -> None:
        self.places = places
        self._reading = reading

    def carries(self, node: ast.AST, through_calls: bool = False) -> bool:
        """`through_calls`: the result of a user's function carries the value if an argument does."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and place(node) in self.places:
            return True
        if isinstance(node, ast.Attribute):
            return node.attr not in _METADATA and self.carries(node.value, through_calls)
        if isinstance(node, ast.Call):
            return self._call_carries(node, through_calls)
        if isinstance(node, COMPREHENSIONS):
            within = self.within(node)
            return any(within.carries(part, through_calls) for part in _given(node))
        if isinstance(node, (ast.Name, ast.Constant, ast.Lambda, ast.JoinedStr)):
            return False
        return any(self.carries(child, through_calls) for child in ast.iter_child_nodes(node))

    def _call_carries(self, call: ast.Call, through_calls: bool) -> bool:
        name = called(call)
        if name in _NO_VALUE or name in _METADATA:
            return False
        if self._reading and _reads(call):
            return True
        if isinstance(call.func, ast.Attribute) and self.carries(call.func.value, through_calls):
            return True
        if not through_calls and name not in _COMPUTES and not (isinstance(call.func, ast.Attribute) and is_free(call)):
            return False
        return any(self.carries(part, through_calls) for part in (*call.args, *call.keywords))

    def within(self, node: Comprehension) -> "Values":
        inner = self
        for generator in node.generators:
            inner = Values(inner.iterated(generator.target, generator.iter), self._reading)
        return inner

    def assigned(self, targets: Sequence[ast.AST], value: ast.AST | None) -> Places:
        """The places after `target = … = value`. A value of None does not carry the value."""
        return self._after([pair for target in targets for pair in _unpacked(target, value)])

    def iterated(self, target: ast.AST, source: ast.AST) -> Places:
        """The places after `for target in source` took an element."""
        return self._after(list(_elements(target, source)))

    def put_in(self, call: ast.AST) -> Places:
        """The places after a call as a statement: a list carries the value after it was added."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _PUTS_IN:
            owner = place(call.func.value)
            if owner is not None and any(map(self.carries, call.args)):
                return self.places | {owner}
        return self.places

    def _after(self, pairs: list[_Pair]) -> Places:
        # Evaluate all values before any assignment: `a, b = b, a`.
        given = [value is not None and self.carries(value) for _, value in pairs]
        places = self.places
        for (target, _), carries in zip(pairs, given):
            places = _with(places, target, carries)
        return places


def _with(places: Places, target: ast.AST, carries: bool) -> Places:
    name = place(target)
    if name is None:  # An element with an unknown index: the list gets the value.
        owner = place(target.value) if isinstance(target, ast.Subscript) else None
        return places | {owner} if carries and owner is not None else places
    kept = frozenset(it for it in places if it != name and not it.startswith((f"{name}.", f"{name}[")))
    return kept | {name} if carries else kept


def _unpacked(target: ast.AST, value: ast.AST | None, in_pairs: bool = True) -> Iterator[_Pair]:
    if isinstance(target, ast.Starred):
        yield from _unpacked(target.value, value, False)
    elif not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif in_pairs and isinstance(value, (ast.Tuple, ast.List)) and _are_parallel(target.elts, value.elts):
        for part, of_value in zip(target.elts, value.elts):
            yield from _unpacked(part, of_value)
    else:
        for part in target.elts:
            yield from _unpacked(part, value, False)


def _are_parallel(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    return len(targets) == len(values) and not any(isinstance(part, ast.Starred) for part in (*targets, *values))


def _elements(target: ast.AST, source: ast.AST) -> Iterator[_Pair]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(source, ast.Call):
        if called(source) == "enumerate" and len(target.elts) == 2 and source.args:
            yield from _unpacked(target.elts[0], None)
            yield from _elements(target.elts[1], source.args[0])
            return
        if called(source) == "zip" and _are_parallel(target.elts, source.args):
            for part, of_source in zip(target.elts, source.args):
                yield from _elements(part, of_source)
            return
    yield from _unpacked(target, source, False)


def _given(node: Comprehension) -> list[ast.expr]:
    return [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
