"""How named monoids become C."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from ...errors import UnsupportedError
from ...records import dataclass
from ..printing.code import LOOSE, PRODUCT, SUM, Code, binary, call, compare
from ..printing.monoids import identities
from .conversions import is_bool
from .language import Language, Needs
from .literals import float_literal, int_literal
from .types import int_width, is_double, is_float, scalar_ctype


@dataclass(frozen=True)
class Combination:
    """One step of a reduction: `names = combined(names, values)`.

    identity:  the start value of each component
    statement: gives the statement that combines `values` into the variables `into`
    """

    identity: tuple[Code, ...]
    statement: str

    def step(self, into: Sequence[str], values: Sequence[Code]) -> str:
        """The statement for the given variables and values."""
        fields = {f"a{k}": name for k, name in enumerate(into)}
        fields |= {f"b{k}": value.text for k, value in enumerate(values)}
        return self.statement.format(**fields)


def combination(monoid: str, types: Sequence[Attribute], need: Needs, wide: bool = False) -> Combination:
    """The combination of a named monoid on values of the given types; `wide` where sums of floats are in double."""
    scalar, language = types[0], need.language
    start = identity(monoid, types, language)
    if monoid == "logsumexp" and wide and not is_double(scalar):
        need("combine_logsumexp_wide")
        return Combination(start, language.combining(f"combine_{monoid}", "wide", len(start)))
    if monoid in _SEVERAL:
        ctype = scalar_ctype(scalar)
        need(_SEVERAL[monoid] or f"combine_{monoid}{'' if ctype == 'double' else 'f'}")
        return Combination(start, language.combining(f"combine_{monoid}", ctype, len(start)))
    if is_float(scalar) and monoid in ("sum", "prod"):
        return Combination(start, f"{{a0}} {'+' if monoid == 'sum' else '*'}= {{b0}};")
    combined = combine(monoid, Code("{a0}"), Code("{b0}", LOOSE), scalar, need)
    return Combination(start, f"{{a0}} = {combined};")


def combine(monoid: str, left: Code, right: Code, scalar: Attribute, need: Needs, unsigned: bool = False) -> Code:
    """`left` combined with `right` by a monoid of single values."""
    if is_bool(scalar):
        return compare({"sum": "|", "prod": "&", **_BOOLEAN}[monoid], left, right)
    if is_float(scalar):
        if monoid in ("sum", "prod"):
            return binary("+" if monoid == "sum" else "*", SUM if monoid == "sum" else PRODUCT, left, right)
        if monoid in ("max", "min"):
            need("nan_minmax")
            return call(need.language.overloaded(f"{monoid}_nan", scalar_ctype(scalar)), left, right)
        raise UnsupportedError(f"reduction by {monoid} of {scalar}")
    function, section = _INTEGER[monoid]
    if not function:
        return compare("^", left, right)
    need(section)
    ctype = scalar_ctype(scalar)
    signless = monoid in ("sum", "prod")  # one bit pattern whatever the sign; the support code wraps signed types
    return call(need.language.generic(function, f"{'u' if unsigned and not signless else ''}{ctype}"), left, right)


_BOOLEAN = {"max": "|", "any": "|", "min": "&", "all": "&", "xor": "^"}
_INTEGER = {
    "sum": ("wrap_add", "wrap"),
    "prod": ("wrap_mul", "wrap"),
    "max": ("max_int", "int_minmax"),
    "min": ("min_int", "int_minmax"),
    "xor": ("", ""),
}


def identity(monoid: str, types: Sequence[Attribute], language: Language) -> tuple[Code, ...]:
    """The neutral element of a monoid, one constant for each of its values. UnsupportedError where there is none."""
    bits = None if is_float(types[0]) else int_width(types[0])
    if bits is None and monoid in ("any", "all", "xor"):
        raise UnsupportedError(f"reduction by {monoid} of {types[0]}")
    numbers = identities(monoid, bits)
    return tuple(
        float_literal(float(number), is_double(type_))
        if is_float(type_)
        else int_literal(int(number), int_width(type_), language)
        for number, type_ in zip(numbers, types, strict=True)
    )


#: monoids of several values -> the section that combines them; "" for one a type
_SEVERAL = {
    "argmax": "combine_arg", "argmin": "combine_arg", "welford": "combine_welford", "logsumexp": "", "softmax_sum": "",
}  # fmt: skip
