"""The border between torch's symbolic sizes (SymPy) and the symbolic integers of the IR.

torch hands over SymPy expressions over integer symbols, with functions of its own (`FloorDiv`, `Mod`, ...). They
are told apart by the name of their class, which torch keeps across versions; SymPy's classes of the same name
mean the same. What is not an integer polynomial over floor divisions, remainders, minima and maxima has no
counterpart and raises `UnsupportedSymbol`: the op that needs it then stays an ATen call.

Floating-point steps are taken only where they are exact: a division of integers that is rounded to an integer at
once, and products with floats that are short binary fractions. Both are exact for sizes below 2**52.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy

from ..dialects.sym import ZERO, Expr, SymError, ceildiv, const, smax, smin, symbol
from ..errors import UnsupportedError

MAX_POWER = 16
"""Largest constant exponent that is multiplied out."""
_MAX_FLOAT_BITS = 20
"""Bits of numerator and denominator up to which a product of a float and a size counts as exact."""


class UnsupportedSymbol(UnsupportedError):  # noqa: N818 - it names the symbol, its base says error
    """A symbolic value of torch has no meaning as an integer expression of ours; `expression` is its text."""

    def __init__(self, expression: object, reason: str) -> None:
        super().__init__(f"symbolic value {expression} cannot be expressed: {reason}")
        self.args = (str(expression), reason)
        self.expression = str(expression)
        self.reason = reason

    def __str__(self) -> str:
        return f"symbolic value {self.expression} cannot be expressed: {self.reason}"


def from_symint(value: Any) -> Expr:
    """The expression of a torch.SymInt, or of an int.

    Raises UnsupportedSymbol for SymFloat, SymBool, the sizes of nested tensors, and as `from_sympy` does.
    """
    if isinstance(value, int):
        return const(value)
    node = getattr(value, "node", None)
    if node is None or type(value).__name__ != "SymInt":
        raise UnsupportedSymbol(value, f"it is a {type(value).__name__}, not an integer")
    if node.is_nested_int():
        raise UnsupportedSymbol(value, "it is the size of a nested tensor")
    known = node.maybe_as_int()
    return const(known) if known is not None else from_sympy(node.expr)


@lru_cache(maxsize=1 << 14)
def from_sympy(expr: sympy.Basic) -> Expr:
    """The symbolic integer that a SymPy expression of torch stands for.

    Raises UnsupportedSymbol, which names the part that cannot be expressed.
    """
    rule = _INTEGER_RULES.get(type(expr).__name__)
    if rule is None:
        raise UnsupportedSymbol(expr, f"{type(expr).__name__} has no integer counterpart")
    try:
        return rule(expr)
    except (SymError, ZeroDivisionError) as error:
        raise UnsupportedSymbol(expr, str(error)) from error


def _symbol(expr: Any) -> Expr:
    if not expr.is_integer:
        raise UnsupportedSymbol(expr, "it is not known to be an integer")
    return symbol(expr.name)


def _sum(expr: sympy.Basic) -> Expr:
    if any(not _is_integer_term(arg) for arg in expr.args):
        return _exact_integer(expr)
    return sum(map(from_sympy, expr.args), ZERO)  # pyright: ignore[reportArgumentType]


def _product(expr: sympy.Basic) -> Expr:
    if any(isinstance(arg, sympy.Rational) and arg.q != 1 for arg in expr.args):
        return _exact_integer(expr)
    result = const(1)
    for arg in expr.args:
        result = result * from_sympy(arg)
    return result


def _is_integer_term(expr: sympy.Basic) -> bool:
    return not any(isinstance(part, sympy.Rational) and part.q != 1 for part in (expr, *expr.args))


def _exact_integer(expr: sympy.Basic) -> Expr:
    """A sum or product with fractions, such as `s0/2 + s1/2`, which SymPy knows to be an integer."""
    if not expr.is_integer:
        raise UnsupportedSymbol(expr, "it is not known to be an integer")
    numerator, denominator = _ratio(expr)
    return numerator // denominator


def _power(expr: sympy.Basic) -> Expr:
    base, exponent = expr.args
    if not isinstance(exponent, sympy.Integer) or not 0 <= int(exponent) <= MAX_POWER:
        raise UnsupportedSymbol(expr, f"only constant powers up to {MAX_POWER} are expressible")
    result, factor = const(1), from_sympy(base)
    for _ in range(int(exponent)):
        result = result * factor
    return result


def _shift_left(expr: sympy.Basic) -> Expr:
    return from_sympy(expr.args[0]) * (1 << _shift_amount(expr))


def _shift_right(expr: sympy.Basic) -> Expr:
    return from_sympy(expr.args[0]) // (1 << _shift_amount(expr))


def _shift_amount(expr: sympy.Basic) -> int:
    amount = expr.args[1]
    if not isinstance(amount, sympy.Integer) or not 0 <= int(amount) < 63:
        raise UnsupportedSymbol(expr, "only constant shifts are expressible")
    return int(amount)


def _floor(expr: sympy.Basic) -> Expr:
    numerator, denominator = _ratio(expr.args[0])
    return numerator // denominator


def _ceiling(expr: sympy.Basic) -> Expr:
    return ceildiv(*_ratio(expr.args[0]))


def _truncate(expr: sympy.Basic) -> Expr:
    """Division that rounds towards zero: floor where the quotient cannot be negative."""
    inner = expr.args[0]
    numerator, denominator = _ratio(inner)
    value = denominator.as_int()
    if value is not None and value < 0:
        numerator, denominator, value = -numerator, -denominator, -value
    # torch's quotients carry no sign of their own.
    if inner.is_nonnegative or (inner.args and all(arg.is_nonnegative for arg in inner.args)):
        return numerator // denominator
    if value is None:
        raise UnsupportedSymbol(expr, "it truncates a quotient of unknown sign")
    return smax(numerator, 0) // denominator - smax(-numerator, 0) // denominator


def _ratio(expr: sympy.Basic) -> tuple[Expr, Expr]:
    """Numerator and divisor of a real expression whose value torch computes without rounding error that shows.

    The divisor is that of one division at the root, or a power of two.
    """
    if type(expr).__name__ in ("IntTrueDiv", "FloatTrueDiv"):
        (numerator, below), (denominator, above) = map(_dyadic, expr.args)
        return numerator * above, denominator * below
    numerator, power_of_two = _dyadic(expr)
    return numerator, const(power_of_two)


def _dyadic(expr: sympy.Basic) -> tuple[Expr, int]:
    """Numerator and denominator, a positive integer, of sums and products of integers and fractions."""
    kind = type(expr).__name__
    if kind in ("ToFloat", "Identity") or isinstance(expr, sympy.Number):
        return _number(expr) if isinstance(expr, sympy.Number) else _dyadic(expr.args[0])
    if kind not in ("Add", "Mul"):
        return from_sympy(expr), 1
    numerator, denominator = (const(0), 1) if kind == "Add" else (const(1), 1)
    for part, below in map(_dyadic, expr.args):
        if kind == "Add":
            numerator = numerator * below + part * denominator
        else:
            numerator = numerator * part
        denominator *= below
    return numerator, denominator


def _number(expr: sympy.Number) -> tuple[Expr, int]:
    if isinstance(expr, sympy.Float):
        value = Fraction(*float(expr).as_integer_ratio())
        if max(abs(value.numerator), value.denominator).bit_length() > _MAX_FLOAT_BITS:
            raise UnsupportedSymbol(expr, "products with this float are rounded")
        return const(value.numerator), value.denominator
    if isinstance(expr, sympy.Rational):
        return const(int(expr.p)), int(expr.q)
    raise UnsupportedSymbol(expr, "it is not finite")


_INTEGER_RULES: Mapping[str, Callable[[Any], Expr]] = {
    "Symbol": _symbol,
    "Integer": lambda e: const(int(e)),
    "Zero": lambda e: const(0),
    "One": lambda e: const(1),
    "NegativeOne": lambda e: const(-1),
    "Add": _sum,
    "Mul": _product,
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": lambda e: from_sympy(e.args[0]) // from_sympy(e.args[1]),
    "CleanDiv": lambda e: from_sympy(e.args[0]) // from_sympy(e.args[1]),
    "CeilDiv": lambda e: ceildiv(from_sympy(e.args[0]), from_sympy(e.args[1])),
    "Mod": lambda e: from_sympy(e.args[0]) % from_sympy(e.args[1]),
    "PythonMod": lambda e: from_sympy(e.args[0]) % from_sympy(e.args[1]),
    "ModularIndexing": lambda e: from_sympy(e.args[0]) // from_sympy(e.args[1]) % from_sympy(e.args[2]),
    "Min": lambda e: smin(*map(from_sympy, e.args)),
    "Max": lambda e: smax(*map(from_sympy, e.args)),
    "Abs": lambda e: smax(from_sympy(e.args[0]), -from_sympy(e.args[0])),
    "LShift": _shift_left,
    "RShift": _shift_right,
    "Identity": lambda e: from_sympy(e.args[0]),
    "FloorToInt": _floor,
    "floor": _floor,
    "CeilToInt": _ceiling,
    "ceiling": _ceiling,
    "TruncToInt": _truncate,
}
"""How each class is expressed, by its name."""
