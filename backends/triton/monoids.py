"""How reductions and scans combine: identity, one step, and the combination across a dimension of the tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .dtypes import is_float, literal
from .values import Value

if TYPE_CHECKING:
    from .context import Context

_INF = float("inf")


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
    )
}


def monoid_named(name: str) -> TritonMonoid:
    """A monoid of `loop.MONOIDS`."""
    return _TRITON_MONOIDS[name]


#: kind of a combining `kernel.store` -> what it combines with
STORE_MONOIDS: dict[str, TritonMonoid] = {
    "add": _TRITON_MONOIDS["sum"],
    "mul": _TRITON_MONOIDS["prod"],
    "amax": _TRITON_MONOIDS["max"],
    "amin": _TRITON_MONOIDS["min"],
}


def _lowest(dtype: str) -> float | int:
    if is_float(dtype):
        return -_INF
    return 0 if dtype.startswith("u") else -(1 << (int(dtype[3:]) - 1))


def _highest(dtype: str) -> float | int:
    if is_float(dtype):
        return _INF
    return (1 << int(dtype[4:])) - 1 if dtype.startswith("u") else (1 << (int(dtype[3:]) - 1)) - 1


_IDENTITIES: dict[str, tuple[Callable[[str], bool | int | float], ...]] = {
    "sum": (lambda d: 0,),
    "prod": (lambda d: 1,),
    "max": (_lowest,),
    "min": (_highest,),
    "any": (lambda d: False,),
    "all": (lambda d: True,),
    "xor": (lambda d: 0,),
    # the index loses every tie
    "argmax": (_lowest, _highest),
    "argmin": (_highest, _highest),
    "welford": (lambda d: 0, lambda d: 0, lambda d: 0),
    "logsumexp": (_lowest, lambda d: 0),
}


def identity(name: str, *dtypes: str) -> tuple[Value, ...]:
    """The identity of a monoid as literals, one for each of its values."""
    makers = _IDENTITIES[name]
    wide = dtypes if len(dtypes) == len(makers) else dtypes * len(makers)
    return tuple(Value(literal(make(d), d), d, (), True) for make, d in zip(makers, wide, strict=True))


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
