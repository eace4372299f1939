"""`Scalar`: one value of an element's body, with PyTorch's arithmetic for its element type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import Attribute, SSAValue

from ...dialects.sym import Expr

if TYPE_CHECKING:
    from .scalar_builder import ScalarBuilder

#: what arithmetic takes beside a Scalar: Python numbers and symbolic integers become constants of its type
Number: TypeAlias = "Scalar | bool | int | float | Expr"


class Scalar:
    """An SSA scalar with its element type, which knows the sign that signless arith types lack.

    Operators emit ops at the builder's cursor. Both sides must have one element type, or the other side is a
    number. `/` is true division and needs floats. Comparisons give bool scalars. On bools `+` is or, `*` is and.
    `known` is the Python value of a constant.
    """

    __slots__ = ("builder", "element", "known", "ssa")

    def __init__(
        self,
        builder: ScalarBuilder,
        ssa: SSAValue,
        element: Attribute,
        known: bool | int | float | None = None,
    ) -> None:
        self.builder = builder
        self.ssa = ssa
        self.element = element
        self.known = known

    def __add__(self, other: Number) -> Scalar:
        return self.builder.binary("add", self, other)

    def __sub__(self, other: Number) -> Scalar:
        return self.builder.binary("sub", self, other)

    def __mul__(self, other: Number) -> Scalar:
        return self.builder.binary("mul", self, other)

    def __truediv__(self, other: Number) -> Scalar:
        return self.builder.binary("div", self, other)

    def __radd__(self, other: Number) -> Scalar:
        return self.builder.number(other, self.element) + self

    def __rsub__(self, other: Number) -> Scalar:
        return self.builder.number(other, self.element) - self

    def __rmul__(self, other: Number) -> Scalar:
        return self.builder.number(other, self.element) * self

    def __rtruediv__(self, other: Number) -> Scalar:
        return self.builder.number(other, self.element) / self

    def __and__(self, other: Number) -> Scalar:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Number) -> Scalar:
        return self.builder.binary("or", self, other)

    def __xor__(self, other: Number) -> Scalar:
        return self.builder.binary("xor", self, other)

    def __neg__(self) -> Scalar:
        return self.builder.negate(self)

    def __invert__(self) -> Scalar:
        return self.builder.invert(self)

    def __lt__(self, other: Number) -> Scalar:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Number) -> Scalar:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Number) -> Scalar:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Number) -> Scalar:
        return self.builder.compare("ge", self, other)

    def eq(self, other: Number) -> Scalar:
        """Whether the values are equal; false for NaN."""
        return self.builder.compare("eq", self, other)

    def ne(self, other: Number) -> Scalar:
        """Whether the values differ; true for NaN."""
        return self.builder.compare("ne", self, other)

    def to(self, element: Attribute) -> Scalar:
        """Converted as the program's own `Tensor.to` would."""
        return self.builder.cast(self, element)
