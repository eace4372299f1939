"""Expressions of sizes as JSON: a number, the name of a symbol, or an operator with its operands.

s0 // 2 + 1   is   ["+", ["//", "s0", 2], 1]
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ...errors import UserError

if TYPE_CHECKING:
    import sympy

Size: TypeAlias = "int | str | list[Size]"

_OPERATORS: dict[str, Callable[..., int]] = {
    "+": lambda *parts: sum(parts),
    "*": lambda *parts: functools.reduce(operator.mul, parts, 1),
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda *parts: all(parts),
    "or": lambda *parts: any(parts),
    "not": operator.not_,
}
_OF_SYMPY = {
    "Add": "+", "Mul": "*", "FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%", "Max": "max",
    "Min": "min", "Equality": "==", "Unequality": "!=", "StrictLessThan": "<", "LessThan": "<=",
    "StrictGreaterThan": ">", "GreaterThan": ">=", "And": "and", "Or": "or", "Not": "not",
}  # fmt: skip
"""Classes of SymPy, and of torch's for it, by name."""


def value_of(size: Size, symbols: Mapping[str, int]) -> int:
    """The value of an expression. KeyError for an unknown symbol or operator, TypeError for no expression."""
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return symbols[size]
    return _OPERATORS[str(size[0])](*[value_of(each, symbols) for each in size[1:]])


def symbols_in(size: Size) -> set[str]:
    """The symbols of an expression."""
    if isinstance(size, str):
        return {size}
    return set() if isinstance(size, int) else set().union(*map(symbols_in, size[1:]))


def renamed(size: Size, names: Mapping[str, str]) -> Size:
    """An expression of other symbols; those without a name stay."""
    if isinstance(size, str):
        return names.get(size, size)
    return size if isinstance(size, int) else [size[0], *[renamed(each, names) for each in size[1:]]]


def text_of(size: Size) -> str:
    """An expression as people write it."""
    if not isinstance(size, list):
        return str(size)
    name, parts = (
        str(size[0]),
        [text_of(each) if not isinstance(each, list) else f"({text_of(each)})" for each in size[1:]],
    )
    return f"{name}({', '.join(parts)})" if name in ("max", "min", "not") else f" {name} ".join(parts)


def size_of(expression: sympy.Basic) -> Size:
    """JSON for an expression of SymPy. UserError for one that is more than integers, symbols and operators here."""
    kind = type(expression).__name__
    if getattr(expression, "is_Integer", False):
        return int(str(expression))
    if getattr(expression, "is_Symbol", False):
        return str(expression)
    if kind == "Pow" and getattr(expression.args[1], "is_Integer", False) and expression.args[1] > 0:  # type: ignore[operator]
        return ["*", *[size_of(expression.args[0])] * int(str(expression.args[1]))]
    if kind not in _OF_SYMPY:
        raise UserError(f"the size {expression} cannot be packaged", "export with other dynamic shapes")
    return [_OF_SYMPY[kind], *map(size_of, expression.args)]
