"""From the text of kernels to Triton's function objects: Triton reads the source of a function from its file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..cpp.cache import cache_dir, digest, write_atomically
from .kernel import TritonKernel
from .source import file_text

_FOLDER = "triton"
_loaded: dict[str, ModuleType] = {}


def load_functions(kernels: Sequence[TritonKernel]) -> list[Any]:
    """A `triton.JITFunction` for each kernel (with TRITON_INTERPRET=1 an interpreted one).

    Each kernel has a file of its own in the compile cache, named by its content, and is imported from there. Triton's
    own cache knows a function by its text and its line, so that equal kernels of different graphs, and of different
    processes, are compiled once.
    """
    return [getattr(_module(kernel), kernel.name) for kernel in kernels]


def _module(kernel: TritonKernel) -> ModuleType:
    text = file_text([kernel])
    key = digest(text.encode())
    module = _loaded.get(key)
    if module is None:
        path = cache_dir(_FOLDER) / f"{key}.py"
        if not path.exists() or path.read_text() != text:
            write_atomically(path, text.encode())
        name = f"inductile_triton_{key[:16]}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        _loaded[key] = module
    return module
