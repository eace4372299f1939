"""Expressions as text with a binding strength, the same in C and in Python."""

from __future__ import annotations

from ...records import dataclass

# Binding strengths, tightest first.
ATOM, UNARY, PRODUCT, SUM, LOOSE = range(5)


@dataclass(frozen=True)
class Code:
    """An expression. `level` is the strength of its outermost operator."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `level`."""
        return self.text if self.level <= level else f"({self.text})"

    def __str__(self) -> str:
        return self.text


def binary(operator: str, level: int, left: Code, right: Code) -> Code:
    """`left operator right` for a left-associative operator; never reassociates."""
    return Code(f"{left.at(level)} {operator} {right.at(level - 1)}", level)


def compare(operator: str, left: Code, right: Code) -> Code:
    """A comparison or a bitwise operator: operands bind like sums at least."""
    return Code(f"{left.at(SUM)} {operator} {right.at(SUM)}", LOOSE)


def call(function: str, *arguments: Code) -> Code:
    """`function(arguments)`."""
    return Code(f"{function}({', '.join(a.text for a in arguments)})")


def integer(value: int) -> Code:
    """A plain integer."""
    return Code(str(value), UNARY if value < 0 else ATOM)
