"""Arguments of which an op reads no element: it writes them, or asks only how they lie."""

from __future__ import annotations

from .ops import AtenOp
from .schema import Argument

#: packets, and single overloads of others, that read of `self` its sizes and strides, and no element
_OF_LAYOUT = frozenset({
    "bernoulli.p", "cauchy", "exponential", "geometric", "log_normal", "normal_functional", "random", "uniform",
    "empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like", "fill", "zero",
    "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros",
})  # fmt: skip


def reads_elements(op: AtenOp, argument: Argument) -> bool:
    """Whether an op reads elements of an argument: not of the `out` of an out variant, nor of what gives a layout."""
    gives_layout = argument.name == "self" and not _OF_LAYOUT.isdisjoint((op.packet, op.schema.name))
    return not gives_layout and not (argument.writes and argument.kwarg_only)
