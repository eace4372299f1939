"""Host programs as data, and back. Light to import: neither Dynamo nor the compiler is loaded."""

from __future__ import annotations

import ctypes
import functools
import importlib
import marshal
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any

import torch

from ...lowering.fx_placed_products import PlacedProduct
from ..c_like.calls import Entry, Failure, launch_table
from ..host.arena import shared_arena
from ..host.copies import OnCopies
from ..host.executable import HostProgram

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
    """

    source: str
    watched: str
    recipes: dict[str, Recipe]
    parts: dict[str, FrozenProgram]
    called: dict[str, str]
    code: bytes = b""


def code_bytes(code: CodeType) -> bytes:
    """Code as data, for this version of Python: to compile the text of a deep model takes as long as all else here."""
    return MAGIC_NUMBER + marshal.dumps(code)


def _code(data: bytes) -> CodeType | None:
    return marshal.loads(data[len(MAGIC_NUMBER) :]) if data.startswith(MAGIC_NUMBER) else None


def make_program(data: FrozenProgram, kernels: Mapping[str, int]) -> HostProgram:
    """The program, for the addresses of its kernels by name."""
    namespace = {name: _RECIPES[kind](made_from, kernels) for name, (kind, made_from) in data.recipes.items()}
    for name, value in namespace.items():
        if isinstance(value, _AddressOf):
            namespace[name] = ctypes.addressof(namespace[value.table][0])
    parts = {name: make_program(part, kernels) for name, part in data.parts.items()}
    return HostProgram(data.source, namespace, {}, (), parts, data.called, data.watched, code=_code(data.code))


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
