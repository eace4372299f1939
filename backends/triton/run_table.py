"""Runs of launches in memory, as `launch_run` reads them: see `runs`. Light to import, for programs that are loaded."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import torch

from ...records import dataclass
from .kernel import MAX_INDEX

if TYPE_CHECKING:
    from .bound import DeviceKernel

#: variants of a kernel in a table
VARIANTS = 4
#: a status is the number of a launch times this, and what is wrong with it: an error of the driver, or this less 1,
#: where Python has to look at the launch
CODES = 4096
UNUSUAL = CODES - 1
#: errors of the driver that say that this thread has no context yet
_NO_CONTEXT = frozenset({3, 201})
#: 64-bit fields of a kernel in a table, up to its variants, and of a variant
_FIELDS, _VARIANT_FIELDS = 10, 4
_RECORD = _FIELDS + VARIANTS * _VARIANT_FIELDS
_LAUNCH_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)


@dataclass(frozen=True)
class Direct:
    """What the driver needs to launch a variant of a kernel, of which `scratch` null addresses follow the arguments."""

    function: int
    threads: int
    shared: int
    scratch: int


def driver() -> int | None:
    """The address of the driver's function that launches; None without NVIDIA's driver, and on other GPUs."""
    return _of_driver("cuLaunchKernel")


def overlapping_driver() -> int | None:
    """The same of the function that takes attributes, such as that a launch may begin before the one in front ends."""
    return _of_driver("cuLaunchKernelEx")


@cache
def _of_driver(name: str) -> int | None:
    if torch.version.hip is not None:
        return None
    try:
        return ctypes.cast(getattr(ctypes.CDLL("libcuda.so.1"), name), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def foreign(address: int) -> object:
    """`launch_run` at its address, for programs to call."""
    return _LAUNCH_RUN(address)


@dataclass(frozen=True)
class Row:
    """A launch of a run: where it finds its arguments among the values of a call.

    places:   of addresses, integers, and what follows them
    programs: place of the number of programs; `longest` of the length of its longest buffer
    """

    kernel: DeviceKernel
    buffers: int
    integers: int
    places: tuple[int, ...]
    programs: int
    longest: int

    def run(self, stream: int, values: Sequence[int]) -> None:
        """Launch the usual way."""
        taken = [values[k] for k in self.places[: self.buffers + self.integers]]
        self.kernel(stream, values[self.programs], values[self.longest] > MAX_INDEX, *taken)


class Table:
    """The array of `Kernel` records in memory, and what it points to."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self._arrays = [(ctypes.c_int64 * max(len(row.places), 1))(*row.places) for row in rows]
        self._records = (ctypes.c_int64 * (_RECORD * len(rows)))()
        self.address = ctypes.addressof(self._records)
        for number, (row, array) in enumerate(zip(rows, self._arrays, strict=True)):
            self._records[_RECORD * number : _RECORD * number + _FIELDS - 1] = [
                row.kernel.status_pointer, row.programs, row.longest, row.buffers, row.integers,
                len(row.places), ctypes.addressof(array), driver() or 0,
                (overlapping_driver() or 0) if row.kernel.overlaps else 0,
            ]  # fmt: skip
            self.add_variants(number)

    def add_variants(self, number: int) -> None:
        """Let C launch the variants that the kernel of a launch has loaded by now, the first of them."""
        first = _RECORD * number + _FIELDS
        known = list(self.rows[number].kernel.directs.items())[:VARIANTS]
        for position, (traits, direct) in enumerate(known):
            begin = first + position * _VARIANT_FIELDS
            fields = [traits, direct.function, direct.threads, direct.shared]
            self._records[begin : begin + _VARIANT_FIELDS] = fields
        self._records[first - 1] = len(known)  # last: another thread may be reading


class Resume:
    """Goes on where `launch_run` stopped: called with its status and the values that it was given.

    values: how many they are, without what is in front of them
    """

    def __init__(self, table: Table, values: int) -> None:
        self.table, self.values = table, values
        self._packed = struct.Struct(f"{values + 3}q")

    def __call__(self, status: int, given: bytes) -> None:
        """Launch the usual way from the launch on that the status names. RuntimeError for an error of the driver."""
        first, code = divmod(status, CODES)
        if code != UNUSUAL and code not in _NO_CONTEXT:
            name = self.table.rows[first].kernel.name
            raise RuntimeError(f"CUDA error {code} of the driver at the launch of {name}")
        _, _, stream, *values = self._packed.unpack(given)
        for number, row in enumerate(self.table.rows[first:], first):
            row.run(stream, values)
            self.table.add_variants(number)
