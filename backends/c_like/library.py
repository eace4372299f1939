"""Kernels from source to callable code: grouped, compiled in parallel, cached on disk, loaded."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from ...records import dataclass
from .cache import (
    cache_dir,
    digest,
    in_some_folder,
    is_refusal,
    private_dir,
    remove_leftovers,
    store_library,
    write_entry,
)
from .emit import KernelSource
from .language import Language
from .loaded import CHECKED, address_in, find_kernel
from .toolchain import CHECKED_FLAGS, Compiler, KernelCompileError, compile_sources, find_compiler

_COMMENT = re.compile(r"^\s*//.*\n", re.M)
#: folders of the cache that took no more; this process builds in its private folder instead
_REFUSED: set[Path] = set()


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel in memory. `entry` is the address of `int entry(const int64_t* arguments)`, pointers and integers
    in the order of the parameters; it returns 0 or the number of an error."""

    source: KernelSource
    entry: int
    library: Path
    """The file that holds it."""


def compile_kernels(
    sources: Sequence[KernelSource], processes: int = 0, keep: bool = True, checked: bool = False
) -> list[LoadedKernel]:
    """Compile and load kernels, or load them from the cache. Equal kernels are compiled once.

    processes: most compilers to run at once; 0: one a core
    checked:   whether they are of files, see `checked`: integers wrap then where they overflow
    keep:      whether the cache on disk is used and filled; else a folder that ends with this process

    Raises CompilerNotFoundError without a compiler and KernelCompileError when it rejects a kernel.
    """
    if not sources:
        return []
    language = sources[0].language
    compiler = find_compiler(language, CHECKED_FLAGS if checked else ())
    folder = cache_dir(language.name) if keep else private_dir(language.name)
    keys = [kernel_key(source, compiler) for source in sources]
    wanted = dict(zip(keys, sources, strict=True))
    found = {key: _find(folder, key, entry_name(source), language) for key, source in wanted.items()}
    missing = {key: source for key, source in wanted.items() if found[key] is None}
    if missing:
        found.update(_build_somewhere(missing, compiler, folder, processes or os.cpu_count() or 1))
    return [_load(source, found[key]) for key, source in zip(keys, sources, strict=True)]


def _find(folder: Path, key: str, symbol: str, language: Language) -> tuple[Path, int] | None:
    """Library and address of a kernel in the cache, or where this process builds instead."""
    place = find_kernel(folder, key, symbol)
    if place is None and folder in _REFUSED:
        return find_kernel(private_dir(language.name), key, symbol)
    return place


def kernel_key(source: KernelSource, compiler: Compiler) -> str:
    """Comments do not count, so equal code from other lines of a program is found."""
    code = _COMMENT.sub("", source.text)
    return digest("\n".join((compiler.identity, source.language.prelude.text(source.sections), code)).encode())


def _build_somewhere(
    missing: dict[str, KernelSource], compiler: Compiler, folder: Path, processes: int
) -> dict[str, tuple[Path, int] | None]:
    """Build in the cache, or in a private folder, with a warning, where the disk of the cache takes no more."""

    def build(place: Path) -> dict[str, tuple[Path, int] | None]:
        try:
            return _build(missing, compiler, place, processes)
        except KernelCompileError as error:
            if (code := _refusal(error)) is None:
                raise
            shutil.rmtree(Path(error.source).parent, ignore_errors=True)
            reason = OSError(code, os.strerror(code))
        except OSError as error:
            reason = error
        if is_refusal(reason):
            _REFUSED.add(folder)
        raise reason

    part = compiler.language.name
    return in_some_folder(part, private_dir(part) if folder in _REFUSED else folder, build)


def _refusal(error: KernelCompileError) -> int | None:
    """The number of the error of a disk that took no more, as a compiler, or its linker that a signal ended, told."""
    told = {
        os.strerror(errno.ENOSPC): errno.ENOSPC,
        os.strerror(errno.EFBIG): errno.EFBIG,
        str(signal.strsignal(signal.SIGXFSZ)): errno.EFBIG,
    }
    return next((code for text, code in told.items() if text in error.messages), None)


def _build(
    missing: dict[str, KernelSource], compiler: Compiler, folder: Path, processes: int
) -> dict[str, tuple[Path, int] | None]:
    remove_leftovers(folder)
    groups = _groups(missing, processes)
    units = [_unit([missing[key] for key in group]) for group in groups]
    outputs = compile_sources(compiler, units, folder, processes)
    found: dict[str, tuple[Path, int] | None] = {}
    try:
        for group, output in zip(groups, outputs, strict=True):
            library = store_library(folder, output)
            for key in group:
                symbol = entry_name(missing[key])
                found[key] = library, address_in(library, symbol)  # what does not load is not recorded
                write_entry(folder, key, library, symbol)
            CHECKED.add(library)
    finally:
        shutil.rmtree(outputs[0].parent, ignore_errors=True)
    return found


def _groups(missing: dict[str, KernelSource], processes: int) -> list[list[str]]:
    """Keys for each compiler process, with about equal text and distinct names."""
    count = min(len(missing), processes)
    groups: list[list[str]] = [[] for _ in range(count)]
    names: list[set[str]] = [set() for _ in range(count)]
    sizes = [0] * count
    for key, source in sorted(missing.items(), key=lambda item: -len(item[1].text)):
        free = [k for k in range(len(groups)) if source.name not in names[k]]
        if not free:
            groups.append([])
            names.append(set())
            sizes.append(0)
            free = [len(groups) - 1]
        smallest = min(free, key=lambda k: sizes[k])
        groups[smallest].append(key)
        names[smallest].add(source.name)
        sizes[smallest] += len(source.text)
    return [group for group in groups if group]


def entry_name(source: KernelSource) -> str:
    """C name of the function that takes a kernel's arguments as one array."""
    return f"{source.name}__entry"


def source_text(sources: Sequence[KernelSource]) -> str:
    """The text of several kernels of one language as one file, support code first; "" for none."""
    if not sources:
        return ""
    sections = [section for source in sources for section in source.sections]
    return "\n".join([sources[0].language.prelude.text(sections), *(source.text for source in sources)])


def _unit(sources: Sequence[KernelSource]) -> str:
    return source_text(sources) + "\n" + "\n".join(map(_entry, sources))


def _entry(source: KernelSource) -> str:
    arguments = [f"({ctype})a[{k}]" for k, ctype in enumerate(source.parameter_types)]
    if source.rest:
        arguments.append(source.rest)
    export = f'{source.language.export}__attribute__((visibility("default")))'
    call = f"{source.name}({', '.join(arguments)})"
    return f"{export} int {entry_name(source)}(const int64_t* a) {{ return {call}; }}\n"


def _load(source: KernelSource, place: tuple[Path, int] | None) -> LoadedKernel:
    assert place is not None
    path, address = place
    return LoadedKernel(source, address, path)
