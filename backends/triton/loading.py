"""From the text of kernels to Triton's function objects: Triton reads the source of a function from its file."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..c_like.cache import cache_dir, digest, in_some_folder, write_atomically

if TYPE_CHECKING:
    from .kernel import TritonKernel

_FOLDER = "triton"
_loaded: dict[str, ModuleType] = {}


def load_functions(kernels: Sequence[TritonKernel]) -> list[Any]:
    """A `triton.JITFunction` for each kernel (with TRITON_INTERPRET=1 an interpreted one)."""
    return [load_function(file_of(kernel), kernel.name) for kernel in kernels]


def file_of(kernel: TritonKernel) -> str:
    """The path of a file with a kernel.

    Each kernel has a file of its own in the compile cache, named by its content, and is imported from there. Triton's
    own cache knows a function by its text and its line, so that equal kernels of different graphs, and of different
    processes, are compiled once. Where the disk of the cache takes no more, a private folder holds the file.
    """
    from .source import file_text  # not loaded where files are only read

    text = file_text([kernel])
    return in_some_folder(_FOLDER, cache_dir(_FOLDER), partial(_written, text))


def _written(text: str, folder: Path) -> str:
    path = folder / f"{digest(text.encode())}.py"
    if not path.exists() or path.read_text() != text:
        write_atomically(path, text.encode())
    return os.fspath(path)


def load_function(path: str, name: str) -> Any:
    """The function of that name in a file, which is imported once."""
    module = _loaded.get(path)
    if module is None:
        unique = f"inductile_triton_{Path(path).stem[:16]}"
        spec = importlib.util.spec_from_file_location(unique, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[unique] = module
        spec.loader.exec_module(module)
        _loaded[path] = module
    return getattr(module, name)
