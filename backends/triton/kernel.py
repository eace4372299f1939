"""A kernel as Triton source with everything that compiling and launching it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ...records import dataclass

if TYPE_CHECKING:
    from ...dialects.sym import Expr

#: largest offset that 32-bit index arithmetic reaches
MAX_INDEX = (1 << 31) - 1


#: the constant argument that says whether the copy engine may be used (`boxes.py`)
BOXES = "BOXES"


@dataclass(frozen=True)
class TritonKernel:
    """One `@triton.jit` function.

    source:     its text, with the functions of custom combiners before it
    signature:  argument name -> type ("*fp32", "i32", "constexpr"), in order: buffers, symbols, `status` if the kernel
                reports errors, constants
    constexprs: constant argument -> value. INDEX, where present, is chosen at launch: see `extents`
    grid:       number of programs, over `symbols`
    symbols:    integer arguments, in order
    buffers:    number of buffer arguments
    errors:     what the codes in `status` mean, from 1
    extents:    lengths of the buffers, in elements; where one exceeds MAX_INDEX at a launch, INDEX must be int64
    divisors:   argument -> a number that is known to divide it
    overlaps:   whether it waits for the launch in front by itself, and so may begin before that has ended
    hints:      argument -> a value that is likely at a launch
    descriptor_bytes: of what each program makes in the last buffer, whose address follows the arguments, too
    """

    name: str
    source: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, int]
    grid: Expr
    symbols: tuple[str, ...] = ()
    buffers: int = 0
    errors: tuple[str, ...] = ()
    extents: tuple[Expr, ...] = ()
    num_warps: int = 4
    num_stages: int = 3
    divisors: Mapping[str, int] = field(default_factory=dict)
    hints: Mapping[str, int] = field(default_factory=dict)
    overlaps: bool = False
    descriptor_bytes: int = 0

    @property
    def chooses_index(self) -> bool:
        """Whether the width of index arithmetic depends on the launch."""
        return "INDEX" in self.signature

    def needs_wide_index(self, values: Mapping[str, int]) -> bool:
        """Whether a buffer is too long for 32-bit offsets when the symbols have these values."""
        return any(extent.evaluate(values) > MAX_INDEX for extent in self.extents)

    def programs(self, values: Mapping[str, int]) -> int:
        """The number of programs to launch."""
        return int(self.grid.evaluate(values))
