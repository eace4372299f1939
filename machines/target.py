"""What a description of a target holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TypeAlias

from ..records import dataclass
from .family import Family
from .nests import MeasuredNest
from .products import FewRows, ProductRates, RowSums
from .tuned import Blocks, ChainTiles

_NONE: Mapping[int, float] = MappingProxyType({})
_ATOMICS: Mapping[str, int] = MappingProxyType({"integer": 32, "sum": 16, "extremum": 32})


@dataclass(frozen=True)
class Description:
    """What is known of any machine that kernels are made for.

    name:               `cpp`, or a family and an architecture: `cuda:90`, `hip:gfx942`
    family:             what it has in common with others
    model:              the common model whose figures these are
    bandwidth:          bytes that its memory moves in a nanosecond, as the maker says
    copied:             bytes in a nanosecond, reads plus writes, that a copy reached; 0: not measured
    rates:              bits of a float -> multiplications and additions in a nanosecond without matrix units, as the
                        maker says
    launch_nanoseconds: what starting a kernel costs
    instruction_bytes:  what one instruction of an elementwise op takes of an element's time, in bytes that memory moves
                        meanwhile
    function_bytes:     the same for a function such as exp
    converts_float8:    whether its kernels convert floats of 8 bits, e4m3fn and e5m2, to other numbers and back
    row_sums:           an element -> which products are faster as sums over rows than by the library, measured
    """

    name: str
    family: Family = field(repr=False)
    model: str = ""
    bandwidth: float = 0
    copied: float = 0
    rates: Mapping[int, float] = field(default_factory=lambda: _NONE, repr=False)
    launch_nanoseconds: int = 5000
    instruction_bytes: float = 0.125
    function_bytes: float = 0.5
    converts_float8: bool = False
    row_sums: Mapping[str, RowSums] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def device(self) -> str:
        """Torch's type of device."""
        return self.family.device

    @property
    def arch(self) -> str:
        """What stands behind the colon of the name, `90`."""
        return self.name.partition(":")[2]

    @property
    def needs_many_rows(self) -> bool:
        """Whether a nest with few rows leaves most of the machine idle, so that it had better have more of them."""
        raise NotImplementedError

    @property
    def keeps_order(self) -> bool:
        """Whether stores of different iterations that meet can happen in the order of the iterations."""
        return not self.needs_many_rows


@dataclass(frozen=True)
class CpuTarget(Description):
    """A multicore CPU with SIMD units.

    vector_bytes:  width of a SIMD register; 0: kernels say nothing of lanes, and their compiler may find some
    registers:     SIMD registers that accumulators may take
    cores:         threads that a schedule should be able to feed; 1: all iterations run in order
    l1_bytes, l2_bytes: private data caches of a core
    line_bytes:    a cache line
    grain:         work, in the units of `costs.py`, below which a thread is not worth waking
    capability:    torch's name of the instruction set, as in ATEN_CPU_CAPABILITY; "": what the machine has
    flags:         of the compiler, besides those of every compile
    intrinsics:    what its kernels can do as a whole instead of by loops, as in `dialects/kernel/loops.py`
    dequantised_rows: bits of a product's result, 8 for integers -> the most rows of a product with a weight that is
                   made of less memory that are faster as sums over rows of it, which make an element for each row:
                   where casts alone make it, and where other arithmetic does
    """

    vector_bytes: int = 64
    registers: int = 8
    cores: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    line_bytes: int = 64
    grain: int = 1 << 17
    capability: str = ""
    flags: tuple[str, ...] = ()
    intrinsics: tuple[str, ...] = ("transpose", "dot_digits", "dot_bytes")
    dequantised_rows: Mapping[int, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def needs_many_rows(self) -> bool:
        """A core keeps its lanes busy along a row."""
        return False


@dataclass(frozen=True)
class GpuTarget(Description):
    """A GPU that Triton compiles for.

    warp:          lanes that run in step
    processors:    streaming multiprocessors or compute units
    warps:         most warps of one program
    threads:       most threads that a processor runs at once
    cache_bytes:   the cache that all processors share
    vector_bytes:  what one instruction of a thread loads or stores
    sector_bytes:  what one transaction of the memory moves
    line_bytes:    a cache line
    shared_bytes:  memory of a processor that the threads of one program may share
    copies_boxes:  whether an engine copies tiles of matrices to the memory of a program (TMA)
    loads_in_lanes: whether lanes of matrix units are faster when each loads what it uses, where no wide loads are
                   possible, measured
    matrix_units:  types of which matrix units multiply tiles, "tf32" for float32 read less exactly; the maker's words
    most_sums:     elements of sums that one program keeps in registers
    atomics:       what the memory combines by itself -> the least bits of an element: an "integer" but for products,
                   the "sum" and the "extremum" of floats
    products:      bits of an element, or `TF32` -> measured rates of the library's matrix products
    attention:     bits of an element -> operations in a nanosecond of the library's attention, measured
    dequantised:   bits of an element -> which products with a matrix that is made of less memory are, measured
    integer_nests: whether products of integers of 8 bits are faster as nests than by the library, measured
    nests:         products and attention on matrix units beside the library, measured
    overlaps:      whether a launch may begin before the one in front has ended, and wait in the kernel
    blocks:        tiles of its programs, tuned
    chains:        tiles of chained products, tuned
    """

    warp: int = 32
    processors: int = 108
    warps: int = 32
    threads: int = 2048
    cache_bytes: int = 40 << 20
    vector_bytes: int = 16
    sector_bytes: int = 32
    line_bytes: int = 128
    shared_bytes: int = 64 << 10
    matrix_units: frozenset[str] = field(default_factory=lambda: frozenset(("f16", "bf16", "i8")), repr=False)
    copies_boxes: bool = False
    loads_in_lanes: bool = False
    most_sums: int = 16384
    atomics: Mapping[str, int] = field(default_factory=lambda: _ATOMICS, repr=False)
    products: Mapping[int, ProductRates] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    attention: Mapping[int, float] = field(default_factory=lambda: _NONE, repr=False)
    dequantised: Mapping[int, FewRows] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    integer_nests: bool = False
    nests: tuple[MeasuredNest, ...] = field(default=(), repr=False)
    overlaps: bool = field(default=False, repr=False)
    blocks: Blocks = field(default=Blocks(), repr=False)
    chains: ChainTiles = field(default_factory=ChainTiles, repr=False)

    @property
    def needs_many_rows(self) -> bool:
        """Programs share the rows, and there is room for thousands of threads."""
        return True

    @property
    def hints_cache(self) -> bool:
        """Whether loads and stores of its kernels may say what the cache keeps."""
        return self.family.triton is not None and self.family.triton.hints_cache

    @property
    def groups_elements(self) -> bool:
        """Whether its kernels have a function that combines neighbours before an accumulator takes them."""
        return self.family.triton is not None and self.family.triton.inline_ptx

    @property
    def has_functions(self) -> bool:
        """Whether its kernels have functions for quotients and exponentials of which something is known."""
        return self.family.triton is not None and self.family.triton.inline_ptx

    @property
    def room(self) -> int:
        """Threads that run at once."""
        return self.processors * self.threads

    @property
    def launch_bytes(self) -> int:
        """Bytes that the memory moves while a kernel is launched."""
        return int(self.bandwidth * self.launch_nanoseconds)


Target: TypeAlias = CpuTarget | GpuTarget
