"""Symbolic integers: expressions, their text, attributes, and what ranges prove about them."""

from .attributes import Sym, SymAttr, SymbolAttr, SymbolDeclaration, SymIntOp
from .bounds import bounds
from .containers import AxesAttr, MapAttr, format_axes, parse_axes_body, parse_exprs_until
from .expr import ONE, ZERO, Atom, Expr, SymError, as_expr, ceildiv, const, smax, smin, symbol
from .factors import is_multiple
from .parse import parse_expr, parse_text
from .proofs import lower_expr, prove_le, prove_lt, prove_nonneg, upper_expr
from .ranges import Ranges
from .simplification import prove_eq, simplify

__all__ = [
    "ONE",
    "ZERO",
    "Atom",
    "AxesAttr",
    "Expr",
    "MapAttr",
    "Ranges",
    "Sym",
    "SymAttr",
    "SymError",
    "SymIntOp",
    "SymbolAttr",
    "SymbolDeclaration",
    "as_expr",
    "bounds",
    "ceildiv",
    "const",
    "format_axes",
    "is_multiple",
    "lower_expr",
    "parse_axes_body",
    "parse_expr",
    "parse_exprs_until",
    "parse_text",
    "prove_eq",
    "prove_le",
    "prove_lt",
    "prove_nonneg",
    "simplify",
    "smax",
    "smin",
    "symbol",
    "upper_expr",
]
