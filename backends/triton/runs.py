"""Launches that follow one another as one foreign call: the driver is called from C, without Python in between.

A call takes one array, which Python makes with one `struct.pack`: where the kernels are described, the stream, and each
address, integer and number of programs once. The driver reads arguments straight from that array, so that nothing is
copied. A kernel has up to four variants there, and C takes the one that was compiled for such integers. Where none was,
where an address is not aligned or an error was reported, and in a thread without a context, the launches from there on
take their usual way, and the variants that they load join the table.

The few lines of C are built by the compiler of the kernels for CPUs, and cached as those are.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch

from ...errors import CompilerNotFoundError
from ...passes.remarks import remark
from ..c_like.emit import KernelSource
from ..c_like.library import compile_kernels
from ..c_like.toolchain import KernelCompileError
from ..cpp.language import CPP
from ..host.constants import Constants
from .kernel import MAX_INDEX
from .request import ALIGNED

if TYPE_CHECKING:
    from .bound import DeviceKernel

#: kernels of one run, arguments of one kernel, and integers among these, at most
MAX_LAUNCHES, MAX_ARGUMENTS, MAX_INTEGERS = 256, 128, 30
#: null addresses that follow the arguments of a kernel, at most
SCRATCH = 2
#: variants of a kernel in a table
_VARIANTS = 4
#: a status is the number of a launch times this, and what is wrong with it: an error of the driver, or this less 1,
#: where Python has to look at the launch
_CODES = 4096
_UNUSUAL = _CODES - 1
#: errors of the driver that say that this thread has no context yet
_NO_CONTEXT = frozenset({3, 201})
#: 64-bit fields of a kernel in a table, up to its variants, and of a variant
_FIELDS, _VARIANT_FIELDS = 9, 4
_RECORD = _FIELDS + _VARIANTS * _VARIANT_FIELDS

_LAUNCH_RUN = KernelSource(
    language=CPP,
    name="launch_run",
    text=f"""\
// Launches kernels one after the other. `values` has their arguments, of which the driver takes the places. Addresses
// of buffers have to be aligned, and a variant be there for the integers: `traits` has a bit for 64-bit offsets, and
// two for each integer: that it is a multiple of {ALIGNED}, and that 32 bits hold it. Returns 0, or
// {{number of the launch}} * {_CODES} + what is wrong, and stops there.
typedef unsigned int Size;
typedef int (*Driver)(void*, Size, Size, Size, Size, Size, Size, Size, void*, void**, void**);
struct Variant {{
  int64_t traits;
  void* function;
  int64_t threads, shared;
}};
struct Kernel {{
  const int32_t* status;
  int64_t programs, longest, buffers, integers, count;
  const int64_t* places;
  Driver launch;
  int64_t variants;
  Variant variant[{_VARIANTS}];
}};
extern "C" int launch_run(const Kernel* kernels, int64_t count, void* stream, const int64_t* values) {{
  void* arguments[{MAX_ARGUMENTS}];
  for (int64_t k = 0; k < count; ++k) {{
    const Kernel& each = kernels[k];
    const int64_t programs = values[each.programs];
    int64_t bits = 0, traits = values[each.longest] > INT32_MAX;
    for (int64_t n = 0; n < each.count; ++n) {{
      const int64_t* value = values + each.places[n];
      arguments[n] = const_cast<int64_t*>(value);
      if (n < each.buffers)
        bits |= *value;
      else if (n < each.buffers + each.integers)
        traits |= int64_t(*value % {ALIGNED} == 0 | (*value == int32_t(*value)) << 1) << (2 * (n - each.buffers) + 1);
    }}
    int64_t v = 0;
    while (v < each.variants && each.variant[v].traits != traits) ++v;
    if (bits % {ALIGNED} || v == each.variants || (each.status && *each.status)) return int(k) * {_CODES} + {_UNUSUAL};
    if (programs == 0) continue;
    const Variant& variant = each.variant[v];
    const int status = each.launch(variant.function, Size(programs), 1, 1, Size(variant.threads), 1, 1,
                                   Size(variant.shared), stream, arguments, nullptr);
    if (status != 0) return int(k) * {_CODES} + status;
  }}
  return 0;
}}
""",
    sections=(),
    parameter_types=("const Kernel*", "int64_t", "void*"),
    errors=(),
    rest="a + 3",
)


@dataclass(frozen=True)
class Direct:
    """What the driver needs to launch a variant of a kernel, of which `scratch` null addresses follow the arguments."""

    function: int
    threads: int
    shared: int
    scratch: int


@dataclass(frozen=True)
class RunLaunch:
    """One launch of a run: the kernel on its device, and the texts of its arguments.

    programs: how many there are
    longest:  the length of its longest buffer, in elements; "0" where that says nothing about its code
    """

    kernel: DeviceKernel
    programs: str
    pointers: tuple[str, ...]
    integers: tuple[str, ...] = ()
    longest: str = "0"

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the driver is given."""
        status, scratch = self.kernel.status_pointer, next(iter(self.kernel.directs.values())).scratch
        return (*self.pointers, *self.integers, *([str(status)] if status else []), *["0"] * scratch)


@cache
def driver() -> int | None:
    """The address of the driver's function that launches; None without NVIDIA's driver, and on other GPUs."""
    if torch.version.hip is not None:
        return None
    try:
        return ctypes.cast(ctypes.CDLL("libcuda.so.1").cuLaunchKernel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


@cache
def launch_run() -> int | None:
    """The address of the C function; None, with a remark, where there is no compiler that takes it."""
    try:
        (loaded,) = compile_kernels([_LAUNCH_RUN])
    except (CompilerNotFoundError, KernelCompileError) as error:
        remark("missed", "launch", None, f"each kernel is launched from Python: {error}")
        return None
    return loaded.entry


def is_possible() -> bool:
    """Whether launches can be made from C here."""
    return driver() is not None and launch_run() is not None


def write_run(launches: Sequence[RunLaunch], constants: Constants) -> list[str]:
    """Lines that make these launches on the stream `stream`."""
    values: dict[str, int] = {}
    table = Table([_Row(each, values) for each in launches])
    address = constants.bind("address", table.address)
    packed = struct.Struct(f"{len(values) + 3}q")
    pack = constants.bind("pack", packed.pack)
    entry = launch_run()
    assert entry is not None
    call = constants.bind("launch_run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(entry))
    resume = constants.bind("resume", _resume(table, packed))
    names = ", ".join(each.kernel.name for each in launches)
    comment = f"  # {names}" if len(names) < 80 else f"  # {len(launches)} kernels"
    arguments = ", ".join([address, str(len(launches)), "stream", *values])
    return [f"if status := {call}(given := {pack}({arguments})):{comment}", f"    {resume}(status, given)"]


class _Row:
    """Where a launch finds its arguments among the values; those that are not there yet join them."""

    def __init__(self, launch: RunLaunch, values: dict[str, int]) -> None:
        self.launch = launch
        self.buffers, self.integers = len(launch.pointers), len(launch.integers)
        self.places = [values.setdefault(text, len(values)) for text in launch.arguments]
        self.programs, self.longest = (values.setdefault(t, len(values)) for t in (launch.programs, launch.longest))

    def run(self, stream: int, values: Sequence[int]) -> None:
        """Launch the usual way."""
        taken = [values[k] for k in self.places[: self.buffers + self.integers]]
        self.launch.kernel(stream, values[self.programs], values[self.longest] > MAX_INDEX, *taken)


class Table:
    """The array of `Kernel` records in memory, and what it points to."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self.rows = rows
        self._arrays = [(ctypes.c_int64 * max(len(row.places), 1))(*row.places) for row in rows]
        self._records = (ctypes.c_int64 * (_RECORD * len(rows)))()
        self.address = ctypes.addressof(self._records)
        for number, (row, array) in enumerate(zip(rows, self._arrays, strict=True)):
            self._records[_RECORD * number : _RECORD * number + _FIELDS - 1] = [
                row.launch.kernel.status_pointer, row.programs, row.longest, row.buffers, row.integers,
                len(row.places), ctypes.addressof(array), driver() or 0,
            ]  # fmt: skip
            self.add_variants(number)

    def add_variants(self, number: int) -> None:
        """Let C launch the variants that the kernel of a launch has loaded by now, the first of them."""
        first = _RECORD * number + _FIELDS
        known = list(self.rows[number].launch.kernel.directs.items())[:_VARIANTS]
        for position, (traits, direct) in enumerate(known):
            begin = first + position * _VARIANT_FIELDS
            fields = [traits, direct.function, direct.threads, direct.shared]
            self._records[begin : begin + _VARIANT_FIELDS] = fields
        self._records[first - 1] = len(known)  # last: another thread may be reading


def _resume(table: Table, packed: struct.Struct) -> Callable[[int, bytes], None]:
    def resume(status: int, given: bytes) -> None:
        first, code = divmod(status, _CODES)
        if code != _UNUSUAL and code not in _NO_CONTEXT:
            name = table.rows[first].launch.kernel.name
            raise RuntimeError(f"CUDA error {code} of the driver at the launch of {name}")
        _, _, stream, *values = packed.unpack(given)
        for number, row in enumerate(table.rows[first:], first):
            row.run(stream, values)
            table.add_variants(number)

    return resume
