"""Marks on scalar ops of a kernel: facts by which a target computes them with fewer instructions.

%q = arith.divf %a, %b {divisor = "shared"} : f32          many elements have one divisor
%q = arith.divf %a, %b {divisor = "at_least_one"} : f32    the divisor is at least 1, or NaN
%e = math.exp %x fastmath<afn> {tiny = "zero"} : f32       a result below the normal numbers may be 0
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import StringAttr, f32
from xdsl.ir import Operation

DIVISOR = "divisor"
TINY = "tiny"
#: by attribute: the op that may have it, and its values
_MARKS: dict[str, tuple[type[Operation], tuple[str, ...]]] = {
    DIVISOR: (arith.DivfOp, ("shared", "at_least_one")),
    TINY: (math.ExpOp, ("zero",)),
}


def mark_of(op: Operation, name: str) -> str | None:
    """What a mark of an op says."""
    found = op.attributes.get(name)
    return found.data if isinstance(found, StringAttr) else None


def problem_of_marks(op: Operation) -> str | None:
    """What is wrong with the marks of an op, if anything."""
    for name, (kind, values) in _MARKS.items():
        if name in op.attributes and (not isinstance(op, kind) or op.results[0].type != f32):
            return f"the mark {name} is for {kind.name} of float32"
        if name in op.attributes and mark_of(op, name) not in values:
            return f"the mark {name} is one of {', '.join(values)}, not {op.attributes[name]}"
    return None
