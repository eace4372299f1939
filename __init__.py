"""inductile: a `torch.compile` backend whose every stage is text.

`torch.compile(model, backend="inductile")` needs no import of this package. Importing it costs nothing
either: a public name loads its module when first used (PEP 562), nothing is registered, and the module works
under any name, which matters because the repository root is the package and test runners import it again.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0.dev0"

# public name -> module that defines it, relative to this package
_LAZY = {
    "Config": ".backends.config",
    "list_options": ".backends.config",
    "list_mode_options": ".backends.config",
    "explain": ".backends.explain",
}
# public modules
_LAZY_MODULES = {"debug": ".backends.debug"}


def __getattr__(name: str) -> Any:
    """Load a public name on first use; raises `AttributeError` for any other."""
    if name not in _LAZY and name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in _LAZY_MODULES:
        value = import_module(_LAZY_MODULES[name], __name__)
    else:
        value = getattr(import_module(_LAZY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES})
