"""Symbolic integers: the public constructors. `Expr` itself and its operators live in `polynomial.py`."""

from .division import ceildiv
from .errors import SymError
from .extremum import smax, smin
from .polynomial import ONE, ZERO, Atom, Expr, as_expr, const, symbol

__all__ = ["ONE", "ZERO", "Atom", "Expr", "SymError", "as_expr", "ceildiv", "const", "smax", "smin", "symbol"]
