"""Host programs as data, and back. Light to import: neither Dynamo nor the compiler is loaded."""

from __future__ import annotations

import ctypes
import functools
import importlib
import marshal
import struct
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from ...lowering.fx_placed_products import PlacedProduct
from ...records import dataclass
from ..c_like.calls import Entry, Failure, launch_table
from ..host.arena import shared_arena
from ..host.copies import OnCopies
from ..host.executable import HostProgram

if TYPE_CHECKING:
    from ..host.kept import KeptResults
    from ..triton.bound import BoundKernel
    from ..triton.frozen import FrozenTriton

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
    """A host program: its texts, and recipes for what they name.

    code: what Python has made of the text, as `code_bytes`; empty where only the text travels
    kept: programs that it calls whose results are kept from call to call
    """

    source: str
    watched: str
    recipes: dict[str, Recipe]
    parts: dict[str, FrozenProgram]
    called: dict[str, str]
    code: bytes = b""
    kept: dict[str, FrozenProgram] = field(default_factory=dict)


def code_bytes(code: CodeType) -> bytes:
    """Code as data, for this version of Python: to compile the text of a deep model takes as long as all else here."""
    return MAGIC_NUMBER + marshal.dumps(code)


def _code(data: bytes) -> CodeType | None:
    return marshal.loads(data[len(MAGIC_NUMBER) :]) if data.startswith(MAGIC_NUMBER) else None


def make_program(
    data: FrozenProgram, kernels: Mapping[str, int], on_gpu: Mapping[str, BoundKernel] = MappingProxyType({})
) -> HostProgram:
    """The program, for the addresses of its kernels by name, and its kernels for a GPU."""
    namespace = {name: _made(each, kernels, on_gpu) for name, each in data.recipes.items()}
    for name, value in namespace.items():
        if isinstance(value, _AddressOf):
            namespace[name] = _address_of(namespace[value.table])
    parts = {name: make_program(part, kernels, on_gpu) for name, part in data.parts.items()}
    kept = {name: _kept(name, make_program(part, kernels, on_gpu)) for name, part in data.kept.items()}
    code = _code(data.code)
    return HostProgram(data.source, namespace, {}, (), parts, data.called, data.watched, kept, code=code)


def program_of(
    data: FrozenProgram,
    kernels: Mapping[str, int],
    on_gpu: Mapping[str, FrozenTriton],
    folder: Callable[[str], Path],
) -> HostProgram:
    """A program that runs. `folder` gives the folder for files of the kernels for a GPU by its name."""
    if not on_gpu:
        return make_program(data, kernels)
    from ..triton.frozen import checks_of, thaw_kernels

    bound = thaw_kernels(on_gpu, folder("gpu"))
    program = make_program(data, kernels, bound)
    program.checks = tuple(checks_of(bound.values()))
    return program


def _made(recipe: Recipe, kernels: Mapping[str, int], on_gpu: Mapping[str, BoundKernel]) -> Any:
    kind, made_from = recipe
    if kind in _RECIPES:
        return _RECIPES[kind](made_from, kernels)
    from ..triton.frozen import RECIPES

    return RECIPES[kind](made_from, on_gpu)


def _address_of(table: Any) -> int:
    """Where the table of a run is, of one for the CPU and of one for a GPU."""
    return ctypes.addressof(table[0]) if isinstance(table, tuple) else table.table.address


def _kept(name: str, program: HostProgram) -> KeptResults:
    from ..host.kept import KeptResults

    return KeptResults(name, program.run, program)


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
    "placed": lambda name, _: PlacedProduct(name),
    "entry": lambda name, kernels: Entry(kernels[name]).call,
    "pack": lambda layout, _: struct.Struct(layout).pack,
    "table": _table,
    "address": lambda table, _: _AddressOf(table),
    "object": lambda place, _: _object(place),
}
