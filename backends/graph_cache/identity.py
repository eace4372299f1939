"""What is installed, and on what machine, as text for keys: our code, torch, Triton, Python, plugins, the compiler.

Reading all that takes a tenth of a second. A file in the cache remembers each answer for as long as no file that it was
read from has another size, time or inode.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

from ...extensions import added_groups, adding
from ..host.gpu import is_gpu
from .key import NotCacheableError
from .stamps import facts, files_below
from .store import Remembered

_ROOT = Path(__file__).parent.parent.parent
_FOLDERS = ("backends", "dialects", "lowering", "machines", "passes")
"""What takes part in compiling, in code, in tables and in the headers of kernels; beside them lie tools and pages."""


def identity_lines(devices: Iterable[str]) -> list[str]:
    """All lines, for graphs on these devices. Raises NotCacheableError with plugins, whose code nobody watches."""
    if added_groups():
        raise NotCacheableError(f"plugins are loaded: {', '.join(sorted(added_groups()))}")
    path = tuple(sys.path)
    if plugins := adding(path):
        raise NotCacheableError(f"plugins are installed: {', '.join(plugins)}")
    gpus = sorted(filter(is_gpu, devices))
    return [*_versions(), *_distributions(path), _machine(), compiler_line(), *map(_gpu, gpus)]


_COUNTED = ("triton", "pytorch_triton", "xdsl", "sympy", "mpmath")
"""Installed packages of which the version counts."""


@cache
def _distributions(path: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are there, by what lies beside them."""
    found: list[str] = []
    for folder in path:
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        about = (name for name in names if name.endswith((".dist-info", ".egg-info")))
        found += [name for name in about if name.partition("-")[0].lower() in _COUNTED]
    return tuple(found)


@cache
def code_version() -> str:
    """Our code, as a digest."""
    stamp, files = _sources()
    return Remembered("code").get(stamp, lambda: _digest(files))


@cache
def _versions() -> tuple[str, ...]:
    version = torch.version
    return (
        f"inductile {code_version()}",
        f"torch {torch.__version__} {version.git_version} {version.cuda} {getattr(version, 'hip', None)}",
        f"python {sys.version} {sys.implementation.cache_tag}",
    )


@cache
def _machine() -> str:
    return f"machine {platform.machine()} {os.cpu_count()} {processor_digest()}"


@cache
def _gpu(device: str) -> str:
    """A device that inputs are on, so that asking for it starts nothing."""
    kind = torch.get_device_module(torch.device(device).type)
    return f"gpu {device} {kind.get_device_properties(torch.device(device))}"


def compiler_line() -> str:
    """The C++ compiler: its version, flags and processor; "none", and what was asked for, without one."""
    wanted, path = os.environ.get("CXX", ""), os.environ.get("PATH", "")
    capability = os.environ.get("ATEN_CPU_CAPABILITY", "")
    return _compiler(wanted, path, capability)


@cache
def _compiler(wanted: str, path: str, capability: str) -> str:
    from ..c_like.processor import CANDIDATES

    try:
        words = shlex.split(wanted) or [next((name for name in CANDIDATES if shutil.which(name, path=path)), "")]
    except ValueError:
        words = [""]
    program = shutil.which(words[0], path=path) if words[0] else None
    if program is None:
        return f"compiler none {wanted!r} {capability!r}"
    stamp = f"{wanted} {path} {capability} {processor_digest()} {_stamp([program, os.path.realpath(program)])}"
    return "compiler " + Remembered("compiler").get(stamp, _identity_of_compiler)


def _identity_of_compiler() -> str:
    from ..c_like.toolchain import find_compiler
    from ..cpp.language import CPP

    return find_compiler(CPP).identity


@cache
def processor_digest() -> str:
    """What of the processor's description matters, as a digest."""
    from ..c_like.processor import processor

    return hashlib.sha256(processor().encode()).hexdigest()


def _sources() -> tuple[str, list[str]]:
    """The files of our code, and what of them changes with what they hold."""
    found = [each for name in _FOLDERS for each in files_below(os.path.join(_ROOT, name))]
    outer = [os.path.join(_ROOT, name) for name in ("extensions.py", "errors.py")]
    return "\n".join([*(fact for _, fact in found), _stamp(outer)]), [*(file for file, _ in found), *outer]


def _digest(files: Iterable[str]) -> str:
    total = hashlib.sha256()
    for file in sorted(files):
        content = Path(file).read_bytes()
        total.update(f"{os.path.relpath(file, _ROOT)} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _stamp(files: Iterable[str | Path]) -> str:
    """Facts of those files that are there."""
    found: list[str] = []
    for file in files:
        try:
            found.append(facts(str(file), os.stat(file)))
        except OSError:
            continue
    return "\n".join(found)
