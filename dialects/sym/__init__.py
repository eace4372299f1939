"""Symbolic integers: expressions, their text, attributes, and what ranges prove about them."""

from .attributes import Sym, SymAttr, SymbolAttr, SymbolDeclaration, SymIntOp
from .expr import ONE, ZERO, Atom, Expr, SymError, as_expr, ceildiv, const, smax, smin, symbol
from .parse import parse_expr, parse_text

__all__ = [
    "ONE",
    "ZERO",
    "Atom",
    "Expr",
    "Sym",
    "SymAttr",
    "SymError",
    "SymIntOp",
    "SymbolAttr",
    "SymbolDeclaration",
    "as_expr",
    "ceildiv",
    "const",
    "parse_expr",
    "parse_text",
    "smax",
    "smin",
    "symbol",
]
