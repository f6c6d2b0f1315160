"""Calls a function right after the import of a module, before the importer continues."""

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_Calls = dict[str, tuple[Callable[[], None], Callable[[ModuleType], None]]]


class _Loader(importlib.abc.Loader):
    """A module's own loader with calls around it. The import itself makes the calls: a spec may be requested and dropped
    several times before."""

    def __init__(self, loader: Any, calls: _Calls) -> None:
        self._loader = loader
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its own loader, which inspect, pkgutil and importlib.resources ask for sources.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        if module.__name__ in self._calls:
            self._calls[module.__name__][0]()
        self._loader.exec_module(module)
        calls = self._calls.pop(module.__name__, None)
        if calls is not None:
            calls[1](module)


def found_by_others(
    one: Any, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """The spec that the import would find without this finder."""
    for finder in sys.meta_path:
        if finder is not one and hasattr(finder, "find_spec"):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
    return None


class AfterImport(importlib.abc.MetaPathFinder):
    """A finder that adds calls to the imports of registered modules."""

    def __init__(self) -> None:
        self._calls: _Calls = {}

    def call(self, name: str, then: Callable[[ModuleType], None], before: Callable[[], None] = lambda: None) -> None:
        """Calls `before()` before the import of `name` and `then(module)` after it. Calls both now if `name` is imported."""
        module = sys.modules.get(name)
        if module is not None:
            before()
            then(module)
            return
        self._calls[name] = (before, then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._calls:
            return None
        spec = found_by_others(self, fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._calls)
        return spec


after_import = AfterImport()
