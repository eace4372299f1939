"""What an op costs, as one table: three figures, for the three questions that passes and tools ask.

All figures steer choices and estimates only: no result depends on them. What is not listed counts as its dialect does:
`arith` is one cheap instruction, `math` and `scalar` are functions: a polynomial or a call of a library.
"""

from __future__ import annotations

from functools import cache

from ..records import dataclass


@dataclass(frozen=True)
class OpCost:
    """The cost of one run of an op.

    work:       time, in units of an access to an element in cache: what tiling and scheduling weigh
    weight:     instructions of a lane that lies in registers: what is computed again instead of stored may take so many
    operations: scalar operations as a roofline counts them, by which machines are rated
    """

    work: float
    weight: int
    operations: int


#: one instruction on every processor
_PLAIN = OpCost(0.25, 1, 1)
#: an instruction for moving or converting, which a roofline leaves out
_MOVED = OpCost(0.5, 1, 0)
#: a division of integers takes tens of cycles, and has no lanes
_DIVIDED = OpCost(4.0, 8, 1)
#: a function such as exp
FUNCTION = OpCost(8.0, 16, 16)
_ROUNDED = OpCost(8.0, 1, 1)
#: an op of another package, of which nothing is known
_FOREIGN = OpCost(0.25, 16, 1)

COSTS: dict[str, OpCost] = {
    "arith.constant": OpCost(0.0, 0, 0),
    "arith.divf": OpCost(2.0, 4, 1),
    "arith.divsi": _DIVIDED,
    "arith.divui": _DIVIDED,
    "arith.remsi": _DIVIDED,
    "arith.remui": _DIVIDED,
    "arith.select": OpCost(0.25, 1, 0),
    "kernel.assert": OpCost(0.25, 1, 0),
    "kernel.index": OpCost(0.1, 1, 0),
    "kernel.load": OpCost(1.0, 1, 0),
    "kernel.local": OpCost(0.25, 1, 0),
    "kernel.store": OpCost(1.0, 1, 0),
    "kernel.yield": OpCost(0.25, 1, 0),
    "loop.index": OpCost(0.25, 1, 1),
    "math.absf": _PLAIN,
    "math.fma": _PLAIN,
    "math.sqrt": OpCost(2.0, 4, 1),
    "math.rsqrt": OpCost(3.0, 4, 16),
    "math.ceil": _ROUNDED,
    "math.copysign": _ROUNDED,
    "math.floor": _ROUNDED,
    "math.roundeven": _ROUNDED,
    "math.trunc": _ROUNDED,
    "scalar.cast": _MOVED,
    "scalar.isfinite": _PLAIN,
    "scalar.isinf": _PLAIN,
    "scalar.isnan": _PLAIN,
    "scalar.narrow": _MOVED,
    "scalar.philox": OpCost(20.0, 64, 16),
    "scalar.signbit": _PLAIN,
    "scalar.widen": _MOVED,
}
#: work of a conversion of 64-bit integers to floats, for which few processors have SIMD instructions
WORK_FROM_LONG = 2.0


@cache
def cost_of(name: str) -> OpCost:
    """The cost of an op by its name."""
    found = COSTS.get(name)
    if found is not None:
        return found
    if name.startswith(("math.", "scalar.")):
        return FUNCTION
    return _PLAIN if name.startswith(("arith.", "kernel.", "loop.")) else _FOREIGN
