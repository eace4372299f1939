"""Launches that follow one another as one foreign call: the driver is called from C, without Python in between.

A call takes one array, which Python makes with one `struct.pack`: where the kernels are described, the stream, and each
address once. The driver reads arguments straight from that array, so that nothing is copied. Kernels for which only the
alignment of addresses tells launches apart come here; where an address is not aligned, and in a thread without a
context, the launches from there on take their usual way.

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
from ..cpp.emit import KernelSource
from ..cpp.library import compile_kernels
from ..cpp.toolchain import KernelCompileError
from ..host.constants import Constants
from .request import ALIGNED

if TYPE_CHECKING:
    from .bound import DeviceKernel

#: kernels of one run, and arguments of one kernel, at most
MAX_LAUNCHES, MAX_ARGUMENTS = 256, 128
#: null addresses that follow the arguments of a kernel, at most
SCRATCH = 2
#: a status is the number of a launch times this, and what is wrong with it: an error of the driver, or this less 1
_CODES = 4096
_UNALIGNED = _CODES - 1
#: errors of the driver that say that this thread has no context yet
_NO_CONTEXT = frozenset({3, 201})
_FIELDS = 8

_LAUNCH_RUN = KernelSource(
    name="launch_run",
    text=f"""\
// Launches kernels one after the other. `values` of a launch are addresses, of which the driver takes the places; those
// of buffers have to be aligned. Returns 0, or {{number of the launch}} * {_CODES} + what is wrong, and stops there.
typedef unsigned int Size;
typedef int (*Driver)(void*, Size, Size, Size, Size, Size, Size, Size, void*, void**, void**);
struct Kernel {{
  void* function;
  int64_t programs, threads, shared, buffers, count;
  const int64_t* places;
  Driver launch;
}};
extern "C" int launch_run(const Kernel* kernels, int64_t count, void* stream, const int64_t* values) {{
  void* arguments[{MAX_ARGUMENTS}];
  for (int64_t k = 0; k < count; ++k) {{
    const Kernel& each = kernels[k];
    int64_t bits = 0;
    for (int64_t n = 0; n < each.count; ++n) {{
      const int64_t* value = values + each.places[n];
      arguments[n] = const_cast<int64_t*>(value);
      if (n < each.buffers) bits |= *value;
    }}
    if (bits % {ALIGNED}) return int(k) * {_CODES} + {_UNALIGNED};
    const int status = each.launch(each.function, Size(each.programs), 1, 1, Size(each.threads), 1, 1,
                                   Size(each.shared), stream, arguments, nullptr);
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
    """What the driver needs to launch a kernel of which `scratch` null addresses follow the arguments."""

    function: int
    threads: int
    shared: int
    scratch: int


@dataclass(frozen=True)
class RunLaunch:
    """One launch of a run: the kernel on its device, and the text of its buffers' addresses."""

    name: str
    kernel: DeviceKernel
    direct: Direct
    programs: int
    pointers: tuple[str, ...]


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
    places = [
        [values.setdefault(text, len(values)) for text in (*each.pointers, *["0"] * each.direct.scratch)]
        for each in launches
    ]
    table = constants.bind("table", _table(launches, places))
    address = constants.bind("address", ctypes.addressof(constants.namespace[table][0]))
    packed = struct.Struct(f"{len(values) + 3}q")
    pack = constants.bind("pack", packed.pack)
    entry = launch_run()
    assert entry is not None
    call = constants.bind("launch_run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(entry))
    resume = constants.bind("resume", _resume(launches, places, packed))
    names = ", ".join(each.name for each in launches)
    comment = f"  # {names}" if len(names) < 80 else f"  # {len(launches)} kernels"
    arguments = ", ".join([address, str(len(launches)), "stream", *values])
    return [f"if status := {call}(given := {pack}({arguments})):{comment}", f"    {resume}(status, given)"]


def _table(launches: Sequence[RunLaunch], places: Sequence[Sequence[int]]) -> tuple[object, ...]:
    """The array of `Kernel` records in memory, and what it points to."""
    arrays = [(ctypes.c_int64 * max(len(place), 1))(*place) for place in places]
    records = (ctypes.c_int64 * (_FIELDS * len(launches)))()
    for number, (each, array, place) in enumerate(zip(launches, arrays, places, strict=True)):
        direct = each.direct
        records[_FIELDS * number : _FIELDS * (number + 1)] = [
            direct.function, each.programs, direct.threads, direct.shared, len(each.pointers), len(place),
            ctypes.addressof(array), driver() or 0,
        ]  # fmt: skip
    return records, tuple(arrays)


def _resume(
    launches: Sequence[RunLaunch], places: Sequence[Sequence[int]], packed: struct.Struct
) -> Callable[[int, bytes], None]:
    def resume(status: int, given: bytes) -> None:
        first, code = divmod(status, _CODES)
        if code != _UNALIGNED and code not in _NO_CONTEXT:
            raise RuntimeError(f"CUDA error {code} of the driver at the launch of {launches[first].name}")
        _, _, stream, *values = packed.unpack(given)
        for each, place in zip(launches[first:], places[first:], strict=True):
            each.kernel(stream, each.programs, False, *[values[k] for k in place[: len(each.pointers)]])

    return resume
