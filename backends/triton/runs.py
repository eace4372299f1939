"""Launches that follow one another as one foreign call: the driver is called from C, without Python in between.

A call takes one array, which Python makes with one `struct.pack`: where the kernels are described, the stream, and each
address, integer and number of programs once. The driver reads arguments straight from that array, so that nothing is
copied. A kernel has up to four variants there, and C takes the one that was compiled for such integers. Where none was,
where an address is not aligned or an error was reported, and in a thread without a context, the launches from there on
take their usual way, and the variants that they load join the table.

The few lines of C are built by the compiler of the kernels for CPUs, and cached as those are.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ...errors import CompilerNotFoundError
from ...passes.remarks import remark
from ...records import dataclass
from ..c_like.emit import KernelSource
from ..c_like.library import LoadedKernel, compile_kernels
from ..c_like.toolchain import KernelCompileError
from ..cpp.language import CPP
from ..host.constants import Constants
from .request import ALIGNED
from .run_table import CODES, UNUSUAL, VARIANTS, Resume, Row, Table, driver, foreign

if TYPE_CHECKING:
    from .bound import DeviceKernel

#: kernels of one run, arguments of one kernel, and integers among these, at most
MAX_LAUNCHES, MAX_ARGUMENTS, MAX_INTEGERS = 256, 128, 30
#: null addresses that follow the arguments of a kernel, at most
SCRATCH = 2
_LAUNCH_RUN = KernelSource(
    language=CPP,
    name="launch_run",
    text=f"""\
// Launches kernels one after the other. `values` has their arguments, of which the driver takes the places. Addresses
// of buffers have to be aligned, and a variant be there for the integers: `traits` has a bit for 64-bit offsets, and
// two for each integer: that it is a multiple of {ALIGNED}, and that 32 bits hold it. Returns 0, or
// {{number of the launch}} * {CODES} + what is wrong, and stops there. A kernel that waits by itself for what is in
// front may begin before that ends, where it is one of these launches: nobody knows what the first one follows.
typedef unsigned int Size;
typedef int (*Driver)(void*, Size, Size, Size, Size, Size, Size, Size, void*, void**, void**);
struct Attribute {{
  int id;
  int padding, value, rest[15];
}};
struct Config {{
  Size grid[3], threads[3], shared;
  void* stream;
  const Attribute* attributes;
  Size count;
}};
typedef int (*OverlappingDriver)(const Config*, void*, void**, void**);
const Attribute OVERLAPS = {{6, 0, 1, {{}}}};  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
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
  OverlappingDriver overlap;
  int64_t variants;
  Variant variant[{VARIANTS}];
}};
extern "C" int launch_run(const Kernel* kernels, int64_t count, void* stream, const int64_t* values) {{
  void* arguments[{MAX_ARGUMENTS}];
  bool follows = false;
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
    if (bits % {ALIGNED} || v == each.variants || (each.status && *each.status)) return int(k) * {CODES} + {UNUSUAL};
    if (programs == 0) continue;
    const Variant& variant = each.variant[v];
    const Size grid = Size(programs), threads = Size(variant.threads), shared = Size(variant.shared);
    const Config config = {{{{grid, 1, 1}}, {{threads, 1, 1}}, shared, stream, &OVERLAPS, 1}};
    const int status = follows && each.overlap
        ? each.overlap(&config, variant.function, arguments, nullptr)
        : each.launch(variant.function, grid, 1, 1, threads, 1, 1, shared, stream, arguments, nullptr);
    follows = true;
    if (status != 0) return int(k) * {CODES} + status;
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
class RunLaunch:
    """One launch of a run: the kernel on its device, and the texts of its arguments.

    programs: how many there are
    longest:  the length of its longest buffer, in elements; "0" where that says nothing about its code
    scratch:  null addresses that follow the arguments; None to ask the variants that are loaded
    makes_boxes: whether the first of them is the last buffer, in which programs make descriptors
    """

    kernel: DeviceKernel
    programs: str
    pointers: tuple[str, ...]
    integers: tuple[str, ...] = ()
    longest: str = "0"
    scratch: int | None = None
    makes_boxes: bool = False

    def arguments(self, constants: Constants) -> tuple[str, ...]:
        """What the driver is given."""
        scratch = next(iter(self.kernel.directs.values())).scratch if self.scratch is None else self.scratch
        status = self.kernel.status_pointer
        word = [constants.bind("status", status)] if status else []  # by name: another process has it elsewhere
        own = self.pointers[-1:] if self.makes_boxes else ()
        return (*self.pointers, *self.integers, *word, *own, *["0"] * (scratch - len(own)))


@cache
def run_kernel() -> LoadedKernel | None:
    """The C function; None, with a remark, where there is no compiler that takes it."""
    try:
        (loaded,) = compile_kernels([_LAUNCH_RUN])
    except (CompilerNotFoundError, KernelCompileError) as error:
        remark("missed", "launch", None, f"each kernel is launched from Python: {error}")
        return None
    return loaded


def is_possible() -> bool:
    """Whether launches can be made from C here."""
    return driver() is not None and run_kernel() is not None


def write_run(launches: Sequence[RunLaunch], constants: Constants) -> list[str]:
    """Lines that make these launches on the stream `stream`."""
    values: dict[str, int] = {}
    table = Table([_row(each, values, constants) for each in launches])
    address = constants.bind("address", table.address)
    pack = constants.bind("pack", struct.Struct(f"{len(values) + 3}q").pack)
    loaded = run_kernel()
    assert loaded is not None
    call = constants.bind("launch_run", foreign(loaded.entry))
    resume = constants.bind("resume", Resume(table, len(values)))
    names = ", ".join(each.kernel.name for each in launches)
    comment = f"  # {names}" if len(names) < 80 else f"  # {len(launches)} kernels"
    arguments = ", ".join([address, str(len(launches)), "stream", *values])
    return [f"if status := {call}(given := {pack}({arguments})):{comment}", f"    {resume}(status, given)"]


def _row(launch: RunLaunch, values: dict[str, int], constants: Constants) -> Row:
    """Where a launch finds its arguments among the values; those that are not there yet join them."""
    places = tuple(values.setdefault(text, len(values)) for text in launch.arguments(constants))
    programs, longest = (values.setdefault(text, len(values)) for text in (launch.programs, launch.longest))
    return Row(launch.kernel, len(launch.pointers), len(launch.integers), places, programs, longest)
