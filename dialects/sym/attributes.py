"""The dialect's attributes and its one op."""

from __future__ import annotations

from functools import lru_cache

from typing_extensions import override
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Data, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...records import dataclass
from ..fields import op_definition
from .containers import AxesAttr, MapAttr
from .errors import SymError
from .parse import parse_expr
from .polynomial import Expr, as_expr, symbol

_INDEX = IndexType()


@irdl_attr_definition
class SymAttr(Data[Expr]):
    """A symbolic integer: `#sym.expr<4096*s0 + 1>`."""

    name = "sym.expr"

    @override
    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Expr:
        with parser.in_angle_brackets():
            return parse_expr(parser)

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))

    @staticmethod
    def of(value: Expr | int) -> SymAttr:
        """The attribute of an expression; the same object for the same expression."""
        return _sym_attr(as_expr(value))


@lru_cache(maxsize=1 << 15)
def _sym_attr(expr: Expr) -> SymAttr:
    return SymAttr(expr)


_FIELDS = ("arg", "dim", "stride", "min", "max", "divisor", "hint")


@dataclass(frozen=True)
class SymbolDeclaration:
    """Where a symbol of a function comes from and what is known of it."""

    name: str
    arg: int | None = None
    """Number of the function argument that carries the value; None when an op of the function makes it."""
    dim: int | None = None
    """The value is the size of this dimension of the argument; None: the argument is the integer itself."""
    stride: int | None = None
    """The value is the stride, in elements, of this dimension of the argument."""
    min: int | None = None
    max: int | None = None
    """Inclusive bounds; None is unbounded."""
    divisor: int = 1
    """The value is a multiple of this positive integer."""
    hint: int | None = None
    """A representative value, for choosing tiles; never relied on for correctness."""

    def fields(self) -> list[tuple[str, int]]:
        """The fields that are set, in the order in which they are printed."""
        values = [(field, getattr(self, field)) for field in _FIELDS]
        return [(f, v) for f, v in values if v is not None and (f, v) != ("divisor", 1)]


@irdl_attr_definition
class SymbolAttr(Data[SymbolDeclaration]):
    """Declares a symbol: `#sym.symbol<s0, arg = 1, dim = 0, min = 2, max = 1024, divisor = 8, hint = 16>`."""

    name = "sym.symbol"

    @override
    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SymbolDeclaration:
        with parser.in_angle_brackets():
            start = parser.pos
            name = parser.parse_identifier()
            fields: dict[str, int] = {}
            while parser.parse_optional_punctuation(","):
                field = parser.parse_keyword_in(_FIELDS)
                if field in fields:
                    parser.raise_error(f"{field!r} is given twice")
                parser.parse_punctuation("=")
                fields[field] = parser.parse_integer(allow_boolean=False)
            declaration = SymbolDeclaration(name, **fields)
            problem = _problem(declaration)
            if problem is not None:
                parser.raise_error(problem, start, parser.pos)
        return declaration

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.name)
            for field, value in self.data.fields():
                printer.print_string(f", {field} = {value}")

    @override
    def verify(self) -> None:
        problem = _problem(self.data)
        if problem is not None:
            raise VerifyException(problem)

    @property
    def symbol(self) -> Expr:
        """The declared symbol as an expression."""
        return symbol(self.data.name)


def _problem(declaration: SymbolDeclaration) -> str | None:
    """What contradicts itself in a declaration, if anything."""
    d = declaration
    try:
        symbol(d.name)
    except SymError as error:
        return str(error)
    if d.divisor < 1:
        return f"divisor of {d.name} must be positive, got {d.divisor}"
    if d.min is not None and d.max is not None and d.min > d.max:
        return f"range of {d.name} is empty: {d.min} > {d.max}"
    if d.dim is not None and d.stride is not None:
        return f"{d.name} cannot be both a size and a stride"
    if d.arg is None and (d.dim is not None or d.stride is not None):
        return f"{d.name} names a dimension but no argument"
    if any(field is not None and field < 0 for field in (d.arg, d.dim, d.stride)):
        return f"argument and dimension numbers of {d.name} must not be negative"
    return None


@op_definition
class SymIntOp(IRDLOperation):
    """The value of a symbolic expression as an index: `%n = sym.int s0 + 1`."""

    name = "sym.int"

    value = prop_def(SymAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, value: Expr | int | SymAttr) -> None:
        attr = value if isinstance(value, SymAttr) else SymAttr.of(value)
        super().__init__(properties={"value": attr}, result_types=[_INDEX])

    @override
    @classmethod
    def parse(cls, parser: Parser) -> SymIntOp:
        expr = parse_expr(parser)
        attributes = parser.parse_optional_attr_dict()
        op = cls(expr)
        op.attributes.update(attributes)
        return op

    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.value.data}")
        printer.print_op_attributes(self.attributes)


Sym = Dialect("sym", [SymIntOp], [SymAttr, SymbolAttr, AxesAttr, MapAttr])
