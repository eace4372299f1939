"""The scripts in benchmarks/ and examples/, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parents[1]


def load_benchmark(name: str) -> ModuleType:
    """Import `benchmarks/NAME.py`, one that imports no other script."""
    return _load(f"benchmark_{name}", _ROOT / "benchmarks" / f"{name}.py")


def load_example(name: str) -> ModuleType:
    """Import `examples/NAME.py`."""
    return _load(f"example_{name}", _ROOT / "examples" / f"{name}.py")


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
