"""Compiled graphs from data, without the compiler: kernels from their cache, programs from their texts."""

from __future__ import annotations

import functools
import pickle
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...errors import UserError
from ...records import dataclass
from ..c_like.cache import cache_dir, in_some_folder, keep_library, write_entry
from ..c_like.loaded import address_in, find_kernel
from ..foreign_lowerings import tell_of_foreign_lowerings
from ..graph_report import GraphReport, keep_report
from ..runnable import Outputs, RunnableGraph
from ..torch_trace import count
from .frozen import FrozenKernel, FrozenProgram, program_of
from .identity import code_version, processor_digest

if TYPE_CHECKING:
    from ..triton.frozen import FrozenTriton


@dataclass(frozen=True)
class FrozenGraph:
    """A compiled graph.

    cold:      what only a person, or a cache without the kernels, asks for: their texts
    made_by:   our code; other code may call what programs name otherwise
    processor: what the machine code is for
    libraries: that code by the names of its files, where the graph is to leave this cache
    on_gpu:    the kernels for a GPU, with what they were compiled to
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
    on_gpu: dict[str, FrozenTriton] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """The texts of kernels, by names of files."""
        return _unpacked(self.cold)[0]


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
        program = program_of(data.program, kernels, data.on_gpu, cache_dir)
        program.sources = ColdTexts(program.sources, data.cold)  # pyright: ignore[reportAttributeAccessIssue]
        report = data.report
        report.sources = program.sources
        report.seconds = {"load": time.perf_counter() - started}
        count(report)
        tell_of_foreign_lowerings(report.operators)
        super().__init__(program, data.constants, data.arrangements, data.outputs, report, data.region, data.nvtx)
        keep_report(report)


def load_kernels(data: FrozenGraph) -> dict[str, int]:
    """Addresses of the kernels by name; those that the cache has lost are built again from their texts."""
    folder = cache_dir("cpp")
    places = {name: find_kernel(folder, each.key, each.symbol) for name, each in data.kernels.items()}
    found = {name: place[1] for name, place in places.items() if place is not None}
    if data.libraries and len(found) < len(data.kernels) and data.processor == processor_digest():
        found |= _embedded_somewhere(data, folder)
    missing = [name for name in data.kernels if name not in found]
    if missing:
        from ..c_like.library import compile_kernels
        from ..cpp.language import CPP

        sources = _unpacked(data.cold)[1]
        loaded = compile_kernels([replace(sources[name], language=CPP) for name in missing])
        found |= {name: each.entry for name, each in zip(missing, loaded, strict=True)}
    return found


def _embedded_somewhere(data: FrozenGraph, folder: Path) -> dict[str, int]:
    """The same from the cache, or from a private folder, with a warning, where the disk of the cache takes no more."""
    return in_some_folder("cpp", folder, functools.partial(_embedded, data))


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
