"""The objects through which programs call C++ kernels. Light to import: programs from the cache load nothing else."""

from __future__ import annotations

import builtins
import ctypes
from collections.abc import Callable, Sequence

from ...errors import of_program


class Entry:
    """A foreign function of one array; calling it releases the interpreter lock."""

    def __init__(self, address: int) -> None:
        self.call: Callable[[bytes], int] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(address)


def launch_table(entries: Sequence[int], places: Sequence[Sequence[int]]) -> tuple[object, ...]:
    """The array of `Launch` records in memory, and what it points to.

    entries: addresses of the kernels, one a launch
    places:  where in the array of values the arguments of each launch are
    """
    arrays = [(ctypes.c_int64 * max(len(p), 1))(*p) for p in places]
    records = (ctypes.c_int64 * (3 * len(entries)))()
    for position, (entry, array, place) in enumerate(zip(entries, arrays, places, strict=True)):
        records[3 * position : 3 * position + 3] = [entry, len(place), ctypes.addressof(array)]
    return records, tuple(arrays)


def kernel_error(text: str) -> Exception:
    """The exception of an entry of `errors`, "IndexError: index out of range"; RuntimeError when none is named."""
    from ...dialects.loop.body import ERRORS

    kind, separator, message = text.partition(": ")
    if separator and kind in ERRORS:
        return of_program(getattr(builtins, kind)(message))
    return of_program(RuntimeError(text))


class Failure:
    """Raises the error of a status other than 0; `errors` are those of each launch, in the order of its asserts."""

    def __init__(self, errors: Sequence[Sequence[str]]) -> None:
        self.errors = tuple(map(tuple, errors))

    def __call__(self, status: int) -> None:
        """`status` is 64 times the number of the launch, plus the number of its error, from 1."""
        raise kernel_error(self.errors[status // 64][status % 64 - 1])
