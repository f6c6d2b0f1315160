"""Runs a function right after a module was imported, and before the importer goes on."""

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Dict, Optional, Sequence, Tuple


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any, before: Callable[[], None], then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._before = before
        self._then = then

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its own loader: inspect, pkgutil and importlib.resources ask it for sources.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._before()
        self._loader.exec_module(module)
        self._then(module)


class AfterImport(importlib.abc.MetaPathFinder):
    """A finder that only adds an ending to the imports it was told of."""

    def __init__(self) -> None:
        self._then: Dict[str, Tuple[Callable[[], None], Callable[[ModuleType], None]]] = {}

    def call(self, name: str, then: Callable[[ModuleType], None], before: Callable[[], None] = lambda: None) -> None:
        """Calls `before()` as the import of `name` begins and `then(module)` once it is done: both now, if it is."""
        module = sys.modules.get(name)
        if module is not None:
            before()
            then(module)
            return
        self._then[name] = (before, then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        then = self._then.pop(fullname, None)
        if then is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, *then)
                return spec
        self._then[fullname] = then
        return None


after_import = AfterImport()
