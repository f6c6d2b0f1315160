"""The module table: what each module, with all below it, had at the peak. The same rows as `plimsoll plan` has."""

import re
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

# Wrappers that a user does not think of as modules.
_WRAPPERS = ("_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_orig_mod")

ByCategory = dict[str, int]


class Kind(NamedTuple):
    """What is known of a module without it."""

    type: str  # its class, as its author calls it
    is_unit: bool  # fully_shard was applied to it
    parameters: int  # of it and all below, before sharding


class Trees:
    """The modules of the models that ran, by their full names. They need not live any more."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def look(self, roots: Iterable[tuple[str, Any]]) -> None:
        for name, root in roots:
            if root not in self._seen:
                self._seen.add(root)
                for path, module in root.named_modules(prefix=name):
                    self.kinds[path] = _kind_of(module)


class ModuleRows:
    """Where one root alone has parameters, names are paths below it, and it is "" itself; else each begins with its root's class."""

    def __init__(self, native: Any, trees: Trees, device: str) -> None:
        self._alive = native.alive_at_peak(device)
        self._kinds = trees.kinds
        self._roots = [name for name in self._kinds if "." not in name]
        with_parameters = [name for name in self._roots if self._kinds[name].parameters]
        self.root: str | None = with_parameters[0] if len(with_parameters) == 1 else None
        self._highest: dict[str, int] = {}
        for one in native.module_stats():
            path = self.path(one["fqn"])
            self._highest[path] = max(self._highest.get(path, 0), one["local_peak"].get(device, 0))

    def path(self, fqn: str) -> str:
        """A module, or several that were sharded together, as a user knows them."""
        return _folded(", ".join(self._one_path(one) for one in fqn.split(", ")))

    def readable(self, text: str) -> str:
        """The same for every path in a text."""
        if self.root is None:
            return text
        pattern = re.compile(rf"(?<![\w.]){re.escape(self.root)}((?:\.\w+)*)")
        return _folded(pattern.sub(lambda found: self._one_path(found[0]) or "the root", text))

    def rows(self, depth: int) -> list[dict[str, Any]]:
        with_all_below: dict[str, ByCategory] = {}
        groups: dict[str, ByCategory] = {}
        others: dict[str, ByCategory] = {}
        known = {self._one_path(name) for name in self._kinds}
        for tensor in self._alive:
            category, count = tensor["category"], tensor["bytes"]
            members = [self._one_path(one) for one in tensor["owner"].split(", ")] if tensor["owner"] else []
            if not members or not all(member in known for member in members):
                _add(others, tensor["owner"], category, count)
                continue
            around: set[str] = set()
            for member in members:
                paths = list(self._with_ancestors(member))
                around.update(paths[1:] if len(members) > 1 else paths)  # Of all of them, and of none alone.
            for path in around:
                _add(with_all_below, path, category, count)
            if len(members) > 1:
                _add(groups, _folded(", ".join(members)), category, count)
        rows = [
            _row(path, *kind, self._highest.get(path, 0), with_all_below.get(path, {}))
            for path, kind in self._tree(depth)
        ]
        rows += [_row(name, "sharded together", True, 0, 0, held) for name, held in sorted(groups.items())]
        rows += [
            _row(name or "(no module)", "optimizer" if name else "", False, 0, 0, held)
            for name, held in sorted(others.items())
        ]
        return rows

    def _tree(self, depth: int) -> Iterator[tuple[str, Kind]]:
        """Parents before children, each path once: of a wrapper, what it wraps. What holds no parameters and never ran is left out."""
        by_path: dict[str, Kind] = {}
        for name, kind in self._kinds.items():
            path = self._one_path(name)
            if self._parts(path) <= depth and (kind.parameters or path in self._highest):
                is_unit = kind.is_unit or (path in by_path and by_path[path].is_unit)
                by_path[path] = kind._replace(is_unit=is_unit)
        return iter(sorted(by_path.items(), key=lambda item: [_natural(part) for part in item[0].split(".")]))

    def _one_path(self, fqn: str) -> str:
        parts = [part for part in fqn.split(".") if part not in _WRAPPERS]
        if self.root is not None and parts[0] == self.root:
            parts = parts[1:]
        return ".".join(parts)

    def _parts(self, path: str) -> int:
        """The root has none."""
        count = len(path.split(".")) if path else 0
        return max(count - 1, 0) if self._begins_with_root(path) else count

    def _with_ancestors(self, path: str) -> Iterator[str]:
        yield path
        below_the_root = path and not self._begins_with_root(path)
        while "." in path:
            path = path.rpartition(".")[0]
            yield path
        if below_the_root:
            yield ""

    def _begins_with_root(self, path: str) -> bool:
        return self.root is None or path.split(".")[0] in self._roots


def _add(table: dict[str, ByCategory], name: str, category: str, count: int) -> None:
    held = table.setdefault(name, {})
    held[category] = held.get(category, 0) + count


def _row(name: str, kind: str, is_unit: bool, parameters: int, highest: int, held: ByCategory) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "fsdp_unit": is_unit,
        "parameters": parameters,
        "highest_bytes": highest,
        "total_bytes": sum(held.values()),
        "at_peak": largest_first(held),
    }


def _folded(text: str) -> str:
    """Blocks that were sharded together, which a path lists with commas, as a range: `layers.8-15`."""

    def fold(found: "re.Match[str]") -> str:
        numbers = [int(part.rpartition(".")[2]) for part in found[0].split(", ")]
        in_a_row = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return f"{found[1]}{numbers[0]}-{numbers[-1]}" if in_a_row else found[0]

    return re.sub(r"(?<![\w.])((?:\w+\.)+)\d+(?:, \1\d+)+(?![\w.])", fold, text)


def largest_first(categories: ByCategory) -> ByCategory:
    return {name: count for name, count in sorted(categories.items(), key=lambda item: (-item[1], item[0])) if count}


def _kind_of(module: Any) -> Kind:
    kind = type(module)
    is_unit = hasattr(kind, "_get_fsdp_state")
    if is_unit and len(kind.__bases__) > 1:
        kind = kind.__bases__[-1]  # fully_shard makes a class of its own of it
    return Kind(kind.__name__, is_unit, sum(parameter.numel() for parameter in module.parameters()))


def _natural(name: str) -> list[Any]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split("([0-9]+)", name)]
