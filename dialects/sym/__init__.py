"""Symbolic integers: expressions, their text, attributes, and what ranges prove about them."""

from .attributes import Sym, SymAttr, SymbolAttr, SymbolDeclaration, SymIntOp
from .containers import AxesAttr, MapAttr, format_axes, parse_axes_body, parse_exprs_until
from .expr import ONE, ZERO, Atom, Expr, SymError, as_expr, ceildiv, const, smax, smin, symbol
from .parse import parse_expr, parse_text

__all__ = [
    "ONE",
    "ZERO",
    "Atom",
    "AxesAttr",
    "Expr",
    "MapAttr",
    "Sym",
    "SymAttr",
    "SymError",
    "SymIntOp",
    "SymbolAttr",
    "SymbolDeclaration",
    "as_expr",
    "ceildiv",
    "const",
    "format_axes",
    "parse_axes_body",
    "parse_expr",
    "parse_exprs_until",
    "parse_text",
    "smax",
    "smin",
    "symbol",
]
