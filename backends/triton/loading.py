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


def load_functions(kernels: Sequence[TritonKernel]) -> dict[str, Any]:
    """Kernel name -> `triton.JITFunction` (with TRITON_INTERPRET=1 an interpreted one).

    The text is written into the compile cache, named by its content, and imported from there; equal text is loaded
    once a process.
    """
    names = [k.name for k in kernels]
    if len(set(names)) < len(names):
        raise ValueError(f"kernels of one file need names of their own: {', '.join(names)}")
    text = file_text(kernels)
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
    return {k.name: getattr(module, k.name) for k in kernels}
