"""How reductions and scans combine: identity, one step, and the combination across a dimension of the tile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...records import dataclass
from ..printing.monoids import identities
from .dtypes import is_float, literal
from .values import Value

if TYPE_CHECKING:
    from .context import Context


@dataclass(frozen=True)
class TritonMonoid:
    """A monoid of `loop.MONOIDS`, or a custom one, in Triton.

    function: name of the combining function, with its module
    infix:    operator that does the same for one value, or ""
    across:   function of Triton that reduces a dimension the same way, or "" for the general `tl.reduce`
    """

    name: str
    arity: int
    function: str
    infix: str = ""
    across: str = ""

    def combine(self, context: Context, left: Sequence[Value], right: Sequence[Value]) -> tuple[str, ...]:
        """Text of the combination of two tuples of values; one text for all where the function gives a tuple."""
        if self.infix:
            return (f"{context.tensor(left[0])} {self.infix} {context.tensor(right[0])}",)
        arguments = ", ".join(context.typed(v) for v in (*left, *right))
        return (f"{self.function}({arguments})",)


_TRITON_MONOIDS = {
    m.name: m
    for m in (
        TritonMonoid("sum", 1, "prelude.add", "+", "tl.sum"),
        TritonMonoid("prod", 1, "prelude.multiply", "*"),
        TritonMonoid("max", 1, "prelude.maximum"),
        TritonMonoid("min", 1, "prelude.minimum"),
        TritonMonoid("any", 1, "prelude.bit_or", "|"),
        TritonMonoid("all", 1, "prelude.bit_and", "&"),
        TritonMonoid("xor", 1, "prelude.bit_xor", "^"),
        TritonMonoid("argmax", 2, "prelude.argmax"),
        TritonMonoid("argmin", 2, "prelude.argmin"),
        TritonMonoid("welford", 3, "prelude.welford"),
        TritonMonoid("logsumexp", 2, "prelude.logsumexp"),
        TritonMonoid("softmax_sum", 3, "prelude.softmax_sum"),
    )
}


def monoid_named(name: str) -> TritonMonoid:
    """A monoid of `loop.MONOIDS`."""
    return _TRITON_MONOIDS[name]


def identity(name: str, *dtypes: str) -> tuple[Value, ...]:
    """The identity of a monoid as literals, one for each of its values."""
    first = dtypes[0]
    bits = None if is_float(first) else int(re.sub(r"\D", "", first))
    numbers = identities(name, bits, first.startswith("u"))
    wide = dtypes if len(dtypes) == len(numbers) else dtypes * len(numbers)
    return tuple(Value(literal(_number(n, d), d), d, (), True) for n, d in zip(numbers, wide, strict=True))


def _number(number: float, dtype: str) -> bool | int | float:
    return bool(number) if dtype == "int1" else number


#: dtypes of which Triton's own reductions keep the type
_KEPT = frozenset({"float32", "float64", "int32", "int64"})


def reduce_text(monoid: TritonMonoid, values: Sequence[Value], dim: int | None, keep: bool) -> str:
    """Text that reduces dimension `dim` of blocks (all dimensions for None)."""
    place = "None" if dim is None else str(dim)
    tail = ", keep_dims=True" if keep else ""
    if monoid.across and values[0].dtype in _KEPT:
        return f"{monoid.across}({values[0]}, {place}{tail})"
    block = values[0].text if len(values) == 1 else f"({', '.join(v.text for v in values)})"
    return f"tl.reduce({block}, {place}, {monoid.function}{tail})"
