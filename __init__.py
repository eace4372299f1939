"""inductile: a `torch.compile` backend whose every stage is text.

`torch.compile(model, backend="inductile")` needs no import of this package. Importing it costs nothing
either: a public name loads its module when first used (PEP 562), and no torch is loaded. Under its own name alone it
enters the backend in torch's registry (see `backends/registration.py`), since the repository root is the package,
which test runners import again under another name.
"""

from __future__ import annotations

from typing import Any

__version__: str  # of what is installed, which has it from the git tag; read when it is asked for

# public name -> module that defines it, relative to this package
_LAZY = {
    "Config": ".backends.config",
    "list_options": ".backends.config",
    "list_mode_options": ".backends.config",
    "backend": ".backends.torch_compile",
    "explain": ".backends.explain",
    "register_lowering": ".lowering.fx_lowerings",
    "autotune_backends": ".backends.selection.autotune",
    "package": ".backends.packages.make",
    "load_package": ".backends.packages.load",
}
# public modules
_LAZY_MODULES = {"debug": ".backends.debug"}


def __getattr__(name: str) -> Any:
    """Load a public name on first use; raises `AttributeError` for any other."""
    if name == "__version__":
        return _version()
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
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("inductile")
    except PackageNotFoundError:  # a checkout on the path that nobody has installed
        return "0+unknown"


if __name__ == "inductile":
    from importlib import import_module

    import_module(".backends.registration", __name__).register()
