"""Names of implementations: the attribute of a product that says who computes it, where ATen does not choose."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...dialects.sym import Expr

#: the attribute of an op that names its implementation; without it ATen chooses
IMPLEMENTATION = "implementation"

BLAS, ONEDNN = "blas", "onednn"
LIBRARIES = (BLAS, ONEDNN)

LIBRARY, FLOATS = "library", "floats"
INTEGER_LIBRARIES = (LIBRARY, FLOATS)
"""Who multiplies integers: ATen, or products of float32 in blocks of the depth whose sums are exact."""

AUTO, FASTER, NEVER = "auto", "faster", "never"
COPIES = (AUTO, FASTER, NEVER)
"""When a product of many rows on a GPU dequantises its weight into memory, for the library."""

EXACT_DEPTH = 1024
"""So many products of two numbers of 8 bits add up to at most 2^24, which float32 holds exactly."""

NEST = "nest"
"""A nest of ours, which fuses with what is around it: `lower-aten-to-loop` makes one of an op that says so."""

LEAST_OF_UNITS = 9
"""Fewest rows and columns of a nest for matrix units. Fewer vectors are multiplied by sums over rows."""

MOST_OF_CHAIN = 256
"""Most columns of products that read what products make, and the longest depth of these: a program has tiles of all."""

TURNS = "turns"
"""Rows of the result in turns, so that each product writes rows that begin at aligned addresses.

Of a row-major result every n-th row begins at the same place modulo `ALIGNMENT`, for n = `turns(columns, size)`. One
product computes such rows: their distance is aligned, and so is the first column that it computes of them. The columns
before and behind come from a product of their own, `ALIGNMENT` bytes at each end.
"""

SCRATCH = "scratch"
"""Blocks of rows into scratch memory whose rows are aligned, each copied from there: for few rows, of which each turn
would read all of the second operand."""

SCRATCH_BYTES = 64 << 20
"""What such a block takes at most."""

ALIGNMENT = 16
"""Bytes that a library's fast kernels want the rows of matrices to begin at multiples of."""


def turns(columns: int, size: int) -> int:
    """How many rows of so many elements of `size` bytes lie between two that begin at the same place; 1 if all do."""
    return ALIGNMENT // gcd(ALIGNMENT, columns * size)


def alignment(step: Expr, size: int) -> int:
    """Bytes that all rows begin at multiples of, `ALIGNMENT` at most; a step that is a symbol is taken to have that."""
    constant = step.as_int()
    return ALIGNMENT if constant is None else gcd(ALIGNMENT, constant * size)
