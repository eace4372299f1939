"""Compiled graphs from data, without the compiler: kernels from their cache, programs from their texts."""

from __future__ import annotations

import ctypes
import functools
import importlib
import pickle
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ...errors import UserError
from ..c_like.cache import cache_dir, keep_library, write_entry
from ..c_like.calls import Entry, Failure, launch_table
from ..c_like.loaded import address_in, find_kernel
from ..graph_report import GraphReport, keep_report
from ..host.arena import shared_arena
from ..host.copies import OnCopies
from ..host.executable import HostProgram
from ..runnable import Outputs, RunnableGraph
from .identity import code_version, processor_digest

Recipe = tuple[str, Any]
"""What an object is, and what it is made from; see `_RECIPES`."""


@dataclass(frozen=True)
class FrozenKernel:
    """A kernel by its key in the cache, the file that it is in, and the C name of its entry."""

    key: str
    library: str
    symbol: str


@dataclass(frozen=True)
class FrozenProgram:
    """A host program: its texts, and recipes for what they name."""

    source: str
    watched: str
    recipes: dict[str, Recipe]
    parts: dict[str, FrozenProgram]
    called: dict[str, str]


@dataclass(frozen=True)
class FrozenGraph:
    """A compiled graph.

    cold:      what only a person, or a cache without the kernels, asks for: their texts
    made_by:   our code; other code may call what programs name otherwise
    processor: what the machine code is for
    libraries: that code by the names of its files, where the graph is to leave this cache
    """

    program: FrozenProgram
    kernels: dict[str, FrozenKernel]
    cold: bytes
    constants: tuple[torch.Tensor, ...]
    arrangements: tuple[Any, ...]
    outputs: Outputs | None
    report: GraphReport
    region: str
    nvtx: bool
    made_by: str
    processor: str
    libraries: dict[str, bytes]


class ColdTexts(Mapping[str, str]):
    """Texts that are unpacked when somebody reads one."""

    def __init__(self, first: Mapping[str, str], cold: bytes) -> None:
        self._first, self._cold = first, cold

    @functools.cached_property
    def _texts(self) -> dict[str, str]:
        return {**self._first, **_unpacked(self._cold)[0]}

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _unpacked(cold: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Texts, and sources of kernels by name."""
    return pickle.loads(zlib.decompress(cold))


class StoredGraph(RunnableGraph):
    """A graph from the cache; it runs behind `post_compile`, which AOTAutograd calls."""

    def __init__(self, data: FrozenGraph) -> None:
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredGraph, (self.data,)

    def post_compile(self, *_: Any) -> None:
        """Load the kernels and make the program.

        Raises UserError for a graph of another version, and errors of the compiler where kernels are built again.
        """
        data, started = self.data, time.perf_counter()
        if data.made_by != code_version():
            raise UserError("the graph was compiled by another version of inductile", "compile it again")
        kernels = load_kernels(data)
        program = _program(data.program, kernels)
        program.sources = ColdTexts(program.sources, data.cold)  # pyright: ignore[reportAttributeAccessIssue]
        report = data.report
        report.sources = program.sources
        report.seconds = {"load": time.perf_counter() - started}
        super().__init__(program, data.constants, data.arrangements, data.outputs, report, data.region, data.nvtx)
        keep_report(report)


def load_kernels(data: FrozenGraph) -> dict[str, int]:
    """Addresses of the kernels by name; those that the cache has lost are built again from their texts."""
    folder = cache_dir("cpp")
    places = {name: find_kernel(folder, each.key, each.symbol) for name, each in data.kernels.items()}
    found = {name: place[1] for name, place in places.items() if place is not None}
    if data.libraries and len(found) < len(data.kernels) and data.processor == processor_digest():
        found |= _embedded(data, folder)
    missing = [name for name in data.kernels if name not in found]
    if missing:
        from ..c_like.library import compile_kernels
        from ..cpp.language import CPP

        sources = _unpacked(data.cold)[1]
        loaded = compile_kernels([replace(sources[name], language=CPP) for name in missing])
        found |= {name: each.entry for name, each in zip(missing, loaded, strict=True)}
    return found


def _embedded(data: FrozenGraph, folder: Path) -> dict[str, int]:
    """Addresses of kernels from the libraries that came with a graph; they are in the cache from now on."""
    paths = {name: keep_library(folder, content) for name, content in data.libraries.items()}
    found: dict[str, int] = {}
    for name, each in data.kernels.items():
        path = paths.get(each.library)
        if path is not None:
            write_entry(folder, each.key, path, each.symbol)
            found[name] = address_in(path, each.symbol)
    return found


def _program(data: FrozenProgram, kernels: Mapping[str, int]) -> HostProgram:
    namespace = {name: _RECIPES[kind](made_from, kernels) for name, (kind, made_from) in data.recipes.items()}
    for name, value in namespace.items():
        if isinstance(value, _AddressOf):
            namespace[name] = ctypes.addressof(namespace[value.table][0])
    parts = {name: _program(part, kernels) for name, part in data.parts.items()}
    return HostProgram(data.source, namespace, {}, (), parts, data.called, data.watched)


@dataclass(frozen=True)
class _AddressOf:
    """Stands for the address of a table until that is there."""

    table: str


def _table(launches: Any, kernels: Mapping[str, int]) -> tuple[object, ...]:
    return launch_table([kernels[name] for name, _ in launches], [places for _, places in launches])


def _object(place: tuple[str, str]) -> Any:
    module, path = place
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))


_RECIPES: dict[str, Callable[[Any, Mapping[str, int]], Any]] = {
    "plain": lambda value, _: value,
    "op": lambda names, _: functools.reduce(getattr, names, torch.ops),
    "arena": lambda *_: shared_arena(),
    "failure": lambda errors, _: Failure(errors),
    "copies": lambda parts, _: OnCopies(*parts),
    "entry": lambda name, kernels: Entry(kernels[name]).call,
    "pack": lambda layout, _: struct.Struct(layout).pack,
    "table": _table,
    "address": lambda table, _: _AddressOf(table),
    "object": lambda place, _: _object(place),
}
