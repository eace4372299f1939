"""How named monoids and the kinds of a combining store become C++."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from ...errors import UnsupportedError
from .code import LOOSE, PRODUCT, SUM, Code, binary, call, compare, float_literal, int_literal
from .conversions import Need, is_bool
from .types import int_width, is_double, is_float, scalar_ctype

#: kinds of `kernel.store` -> the monoid that combines the same way
STORE_MONOIDS = {"add": "sum", "mul": "prod", "amax": "max", "amin": "min"}


@dataclass(frozen=True)
class Combination:
    """One step of a reduction: `names = combined(names, values)`.

    identity:  the start value of each component
    statement: gives the C++ statement that combines `values` into the variables `into`
    """

    identity: tuple[Code, ...]
    statement: str

    def step(self, into: Sequence[str], values: Sequence[Code]) -> str:
        """The statement for the given variables and values."""
        fields = {f"a{k}": name for k, name in enumerate(into)}
        fields |= {f"b{k}": value.text for k, value in enumerate(values)}
        return self.statement.format(**fields)


def combination(monoid: str, types: Sequence[Attribute], need: Need) -> Combination:
    """The combination of a named monoid on values of the given types."""
    several = _SEVERAL.get(monoid)
    if several is not None:
        return several(monoid, types, need)
    scalar = types[0]
    if is_float(scalar) and monoid in ("sum", "prod"):
        return Combination((identity(monoid, scalar),), f"{{a0}} {'+' if monoid == 'sum' else '*'}= {{b0}};")
    combined = combine(monoid, Code("{a0}"), Code("{b0}", LOOSE), scalar, need)
    return Combination((identity(monoid, scalar),), f"{{a0}} = {combined};")


def combine(monoid: str, left: Code, right: Code, scalar: Attribute, need: Need, unsigned: bool = False) -> Code:
    """`left` combined with `right` by a monoid of single values."""
    if is_bool(scalar):
        return compare({"sum": "|", "prod": "&", **_BOOLEAN}[monoid], left, right)
    if is_float(scalar):
        if monoid in ("sum", "prod"):
            return binary("+" if monoid == "sum" else "*", SUM if monoid == "sum" else PRODUCT, left, right)
        if monoid in ("max", "min"):
            need("nan_minmax")
            return call(f"{monoid}_nan", left, right)
        raise UnsupportedError(f"reduction by {monoid} of {scalar}")
    function, section = _INTEGER[monoid]
    if not function:
        return compare("^", left, right)
    need(section)
    ctype = scalar_ctype(scalar)
    signless = monoid in ("sum", "prod")  # one bit pattern whatever the sign; the support code wraps signed types
    return call(f"{function}<{'u' if unsigned and not signless else ''}{ctype}>", left, right)


_BOOLEAN = {"max": "|", "any": "|", "min": "&", "all": "&", "xor": "^"}
_INTEGER = {
    "sum": ("wrap_add", "wrap"),
    "prod": ("wrap_mul", "wrap"),
    "max": ("max_int", "int_minmax"),
    "min": ("min_int", "int_minmax"),
    "xor": ("", ""),
}


def identity(monoid: str, scalar: Attribute) -> Code:
    """The neutral element of a monoid of single values."""
    if is_bool(scalar):
        return Code("true" if monoid in ("prod", "min", "all") else "false")
    if is_float(scalar):
        value = {"sum": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}.get(monoid)
        if value is None:
            raise UnsupportedError(f"reduction by {monoid} of {scalar}")
        return float_literal(value, is_double(scalar))
    width = int_width(scalar)
    lowest, highest = -(1 << (width - 1)), (1 << (width - 1)) - 1
    return int_literal({"sum": 0, "xor": 0, "prod": 1, "max": lowest, "min": highest}[monoid], width)


def _arg(monoid: str, types: Sequence[Attribute], need: Need) -> Combination:
    need("combine_arg")
    start = identity(monoid.removeprefix("arg"), types[0])
    highest = int_literal((1 << 63) - 1, 64)
    return Combination((start, highest), f"combine_{monoid}({{a0}}, {{a1}}, {{b0}}, {{b1}});")


def _welford(monoid: str, types: Sequence[Attribute], need: Need) -> Combination:
    need("combine_welford")
    zero = float_literal(0.0, is_double(types[0]))
    return Combination((zero,) * 3, "combine_welford({a0}, {a1}, {a2}, {b0}, {b1}, {b2});")


def _logsumexp(monoid: str, types: Sequence[Attribute], need: Need) -> Combination:
    double = is_double(types[0])
    need("combine_logsumexp" if double else "combine_logsumexpf")
    start = (float_literal(float("-inf"), double), float_literal(0.0, double))
    return Combination(start, "combine_logsumexp({a0}, {a1}, {b0}, {b1});")


_SEVERAL = {"argmax": _arg, "argmin": _arg, "welford": _welford, "logsumexp": _logsumexp}
