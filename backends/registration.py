"""Entering `inductile` among the backends of torch.compile, once, when this package is imported.

Torch finds the backend by its entry point as well, but without a lock: of several threads that ask for it first, all
but one get "duplicate name: inductile". Whoever has imported this package before finds it entered. Loads no torch:
where torch's registry is not there yet, it is waited for.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAME = "inductile"
_REGISTRY = "torch._dynamo.backends.registry"


class Registered:
    """What torch's registry holds: the backend, whose code is loaded when it compiles first."""

    __name__ = NAME

    def __call__(self, graph: Any, example_inputs: Sequence[Any], **arguments: Any) -> Any:
        """Compile one of Dynamo's graphs; see `InductileBackend`."""
        from .torch_compile import BACKEND

        return BACKEND(graph, example_inputs, **arguments)

    def reset(self) -> None:
        """Called by `torch._dynamo.reset()`."""
        loaded = sys.modules.get(f"{__package__}.torch_compile")
        if loaded is not None:
            loaded.BACKEND.reset()


REGISTERED = Registered()


def register() -> None:
    """Enter the backend in torch's registry, or as soon as that is loaded."""
    registry = sys.modules.get(_REGISTRY)
    if registry is None:
        sys.meta_path.insert(0, _Watcher())
    else:
        _enter(registry)


def _enter(registry: ModuleType) -> None:
    backends: dict[str, Any] = getattr(registry, "_BACKENDS", {})
    entry_point = backends.get(NAME)
    try:
        registry.register_backend(REGISTERED, name=NAME)
    except AssertionError:  # "duplicate name": it is there
        return
    if entry_point is not None:  # which torch 2.11 forgets, and `withdraw` asks for
        backends[NAME] = entry_point


def withdraw() -> None:
    """Make room for what torch is about to enter: it is loading the entry point, which imports this package.

    Torch would find a duplicate then. It loads the entry point only where nothing was entered before.
    """
    registry = sys.modules.get(_REGISTRY)
    entered = getattr(registry, "_COMPILER_FNS", {})
    if entered.get(NAME) is REGISTERED and getattr(registry, "_BACKENDS", {}).get(NAME) is not None:
        del entered[NAME]


class _Watcher(MetaPathFinder, Loader):
    """Enters the backend behind the import of torch's registry; goes away when that begins."""

    def __init__(self) -> None:
        self._loader: Loader | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the others find, loaded by way of this."""
        if fullname != _REGISTRY or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        assert self._loader is not None
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the module's own loader does; then it is there to enter the backend in."""
        assert self._loader is not None
        assert module.__spec__ is not None
        module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _enter(module)
