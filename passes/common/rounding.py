"""The mark on ops of the aten level whose results of 16 bits are rounded wherever they are used.

    %0 = aten.mul.Tensor(%x, %y) {rounded} : !aten.tensor<8xbf16>

`graph-round-decisions` sets it, `lower-aten-to-loop` obeys it: the rounding of such an op is a cast of the program,
which no pass takes away.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

ROUNDED = "rounded"
UNIT = UnitAttr()


def is_rounded(op: Operation) -> bool:
    """Whether an op is marked."""
    return ROUNDED in op.attributes
