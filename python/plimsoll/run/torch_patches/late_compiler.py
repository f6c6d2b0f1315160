"""Imports torch's compiler only when something is compiled.

In ordinary training torch calls `torch._dynamo` at many places (optimizer steps, FSDP2's hooks, checkpointing) to exclude a
function or to break a graph. That imports the whole compiler, which takes two seconds. Without compilation these calls have no effect,
so a placeholder answers them. Any other access to it, or to a module below it, imports the real compiler in its place.
"""

import functools
import importlib
import importlib.abc
import sys
import weakref
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import FunctionType, MethodType, ModuleType
from typing import Any

from plimsoll.run.torch_patches.after_import import after_import, found_by_others

_NAME = "torch._dynamo"
_CONFIG = f"{_NAME}.config"  # Only settings: its import is fast.


class _Placeholder(ModuleType):
    """`torch._dynamo` until something is compiled. After that it forwards to the real module."""

    def __init__(self, compiler: "LateCompiler") -> None:
        super().__init__(_NAME)
        self.__dict__["_compiler"] = compiler
        self.__dict__["trace_rules"] = _TraceRules(compiler)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":  # Code that walks over all modules asks for such names.
            raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
        if name == "config":
            return importlib.import_module(_CONFIG)
        return getattr(self._compiler.real(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or name == "config":
            self.__dict__[name] = value  # Set by the import system.
        else:
            setattr(self._compiler.real(), name, value)

    def graph_break(self, *args: Any, **options: Any) -> Any:
        return self._compiler.real().graph_break(*args, **options) if self._compiler.is_real else None

    def disable(self, fn: Any = None, recursive: bool = True, **options: Any) -> Any:
        compiler = self._compiler
        if compiler.is_real or not recursive or not (fn is None or isinstance(fn, (FunctionType, MethodType))):
            return compiler.real().disable(fn, recursive, **options)
        if fn is None:
            return functools.partial(self.disable, **options)
        return compiler.disabled(fn, options)


class _TraceRules:
    """`torch._dynamo.trace_rules`: process groups clear its cache, which is empty without the compiler."""

    def __init__(self, compiler: "LateCompiler") -> None:
        self._compiler = compiler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiler.real().trace_rules, name)

    def clear_lru_cache(self) -> None:
        if self._compiler.is_real:
            self._compiler.real().trace_rules.clear_lru_cache()


class _Loaded(importlib.abc.Loader):
    """Loads a module that the import of the real compiler has already imported."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec, self._loader = module.__spec__, module.__loader__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._spec, self._loader


class LateCompiler(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the placeholder under the compiler's name until `real` is called."""

    def __init__(self) -> None:
        self.is_real = False
        self._placeholder = _Placeholder(self)
        self._disabled: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self) -> None:
        if _NAME not in sys.modules:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if self.is_real or not name.startswith(_NAME):
            return None
        if name == _NAME:
            spec = found_by_others(self, name, path, target)
            if spec is not None:
                spec.loader = self
            return spec
        if name.startswith(f"{_NAME}.") and name != _CONFIG:
            self.real()
            if name in sys.modules:
                return spec_from_loader(name, _Loaded(sys.modules[name]))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._placeholder

    def exec_module(self, module: ModuleType) -> None:
        pass

    def real(self) -> ModuleType:
        """The real compiler; imports it if necessary."""
        if not self.is_real:
            self.is_real = True
            torch = sys.modules["torch"]
            if vars(torch).get("_dynamo") is self._placeholder:
                del torch._dynamo
            if sys.modules.get(_NAME) is self._placeholder:
                del sys.modules[_NAME]
            for function in list(self._disabled):  # torch cached our wrapper there, which dynamo would trace.
                vars(function).pop("__dynamo_disable", None)
            after_import.call(_NAME, lambda module: None, before=self._begins)
        return importlib.import_module(_NAME)

    def _begins(self) -> None:
        # Keeps the settings. The module is imported already, so the import system does not set the package's attribute.
        config = sys.modules.get(_CONFIG)
        if config is not None:
            setattr(sys.modules[_NAME], "config", config)

    def disabled(self, fn: Callable[..., Any], options: Any) -> Callable[..., Any]:
        """`fn`, excluded from compilation once the compiler is imported."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.is_real:
                return fn(*args, **kwargs)
            return self.real().disable(fn, **options)(*args, **kwargs)

        if options.get("wrapping", True):
            functools.update_wrapper(call, fn)
        marks = {"": True, "_msg": options.get("reason"), "_recursive": True}
        vars(call).update({f"_torchdynamo_disable{name}": value for name, value in marks.items()})
        if isinstance(fn, FunctionType):
            self._disabled.add(fn)
        return call
