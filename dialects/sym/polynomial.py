"""Interned integer polynomials over atoms: the one representation of a symbolic integer.

An expression is a sum of monomials with integer coefficients; a monomial is a product of atoms; an atom is a
symbol or a floor division, modulo, minimum or maximum of expressions. Equal expressions are the same object,
so equality and hashing are those of identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, Literal, TypeAlias

from .errors import SymError

AtomKind: TypeAlias = Literal["symbol", "floordiv", "mod", "min", "max"]
Monomial: TypeAlias = "tuple[Atom, ...]"
"""A product of atoms in canonical order; a power is a repetition; the empty product is 1."""

MAX_DEPTH = 64
"""Deepest nesting of floordiv, mod, min and max."""
MAX_DEGREE = 64
"""Largest number of atoms in one product."""
MAX_TERMS = 1024
"""Largest number of terms in one sum."""

RESERVED = frozenset({"floordiv", "mod", "ceildiv", "min", "max"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*\Z")
_DIGITS = re.compile(r"(\d+)")


class Atom:
    """A factor that is no sum or product: a symbol, or `kind` applied to `args`. Interned."""

    __slots__ = ("args", "depth", "expr", "free_symbols", "key", "kind", "name", "quotient")

    kind: AtomKind
    name: str
    """The symbol's name; empty for the other kinds."""
    args: tuple[Expr, ...]
    """Dividend and divisor, or the compared expressions; empty for a symbol."""
    key: tuple[Any, ...]
    """Order of atoms: symbols before the rest, `s2` before `s10`, the rest by their text."""
    depth: int
    free_symbols: frozenset[str]
    expr: Expr
    """The atom as an expression."""
    quotient: Expr | None
    """For `x mod k`, once it was asked for, `x floordiv k`: what the remainder recombines with."""

    def __reduce__(self) -> tuple[Callable[..., Atom], tuple[Any, ...]]:
        return make_atom, (self.kind, self.name, self.args)

    def __repr__(self) -> str:
        return f"Atom({self.expr})"


class Expr:
    """An immutable, interned integer polynomial, built with `symbol`, `const`, operators, `smin` and `smax`.

    Operators accept ints on either side; `//` is floor division and `%` is Python's modulo, which has the
    sign of the divisor.
    """

    __slots__ = ("_int", "_text", "depth", "free_symbols", "has_mod", "table", "terms")

    terms: tuple[tuple[Monomial, int], ...]
    """Monomials with their nonzero coefficients: higher degree first, then larger coefficient, then name."""
    table: dict[Monomial, int]
    """The same terms for look-up, in no particular order; never to be changed."""
    free_symbols: frozenset[str]
    """Names of all symbols, also inside floordiv, mod, min and max."""
    depth: int
    has_mod: bool
    """Whether a monomial has a `mod` factor, which may recombine with a quotient in a sum."""
    _int: int | None
    _text: str | None

    def as_int(self) -> int | None:
        """The value of a constant; None for anything else."""
        return self._int

    @property
    def is_constant(self) -> bool:
        """Whether the value is known."""
        return self._int is not None

    @property
    def as_atom(self) -> Atom | None:
        """The atom this expression consists of; None for sums, products and constants."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    def __add__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return self if other == 0 else add(self, const(other))
        return add(self, other) if isinstance(other, Expr) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return scale(self, -1)

    def __sub__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return self if other == 0 else add(self, const(-other))
        if not isinstance(other, Expr):
            return NotImplemented
        return ZERO if other is self else add(self, scale(other, -1))

    def __rsub__(self, other: int) -> Expr:
        return add(const(other), scale(self, -1))

    def __mul__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return scale(self, other)
        return multiply(self, other) if isinstance(other, Expr) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Expr | int) -> Expr:
        return _division.floordiv(self, as_expr(other))

    def __rfloordiv__(self, other: int) -> Expr:
        return _division.floordiv(const(other), self)

    def __mod__(self, other: Expr | int) -> Expr:
        return _division.mod(self, as_expr(other))

    def __rmod__(self, other: int) -> Expr:
        return _division.mod(const(other), self)

    def subs(self, mapping: Mapping[str, Expr | int]) -> Expr:
        """Replace symbols, all at once; symbols not in `mapping` stay."""
        if self.free_symbols.isdisjoint(mapping):
            return self
        return _traversal.substitute(self, mapping)

    def evaluate(self, env: Mapping[str, Any]) -> Any:
        """The value for given symbols: ints, or integer arrays of torch or numpy, which broadcast.

        Raises SymError for a symbol without a value; division by zero raises what the values raise.
        """
        return _traversal.evaluate(self, env)

    def split(self, names: Iterable[str]) -> tuple[dict[str, Expr], Expr] | None:
        """Write self as `sum(coefficient[n] * n) + rest` over the symbols `names`.

        Coefficients (only nonzero ones are listed) and rest are free of `names`; None when self is not linear
        in them.
        """
        return _traversal.split(self, names)

    def coefficient(self, name: str) -> Expr | None:
        """What the symbol `name` is multiplied with; None when self is not linear in it."""
        parts = _traversal.split(self, (name,))
        return None if parts is None else parts[0].get(name, ZERO)

    def __str__(self) -> str:
        if self._text is None:
            self._text = _printing.text_of(self)
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Expr:
        return self

    def __reduce__(self) -> tuple[Callable[..., Expr], tuple[Any, ...]]:
        return _from_pairs, (self.terms,)


_EXPRS: dict[frozenset[tuple[Monomial, int]], Expr] = {}
_ATOMS: dict[tuple[Any, ...], Atom] = {}
_ATOMS_LOCK = Lock()
_CONSTANTS: dict[int, Expr] = {}


def intern(terms: dict[Monomial, int]) -> Expr:
    """The expression with these nonzero terms, which must be in normal form already. Keeps `terms`."""
    key = frozenset(terms.items())
    found = _EXPRS.get(key)
    if found is not None:
        return found
    if len(terms) > MAX_TERMS:
        raise SymError(f"symbolic expression has {len(terms)} terms; the limit is {MAX_TERMS}")
    expr = Expr.__new__(Expr)
    expr.table = terms
    expr.terms = tuple(sorted(terms.items(), key=_term_key) if len(terms) > 1 else terms.items())
    atoms = [atom for monomial in terms for atom in monomial]
    expr.depth = max((atom.depth for atom in atoms), default=0)
    expr.has_mod = any(atom.kind == "mod" for atom in atoms)
    expr.free_symbols = frozenset().union(*(atom.free_symbols for atom in atoms))
    expr._int = terms.get((), 0) if not atoms else None
    expr._text = None
    # setdefault keeps one object when two threads build the same expression.
    return _EXPRS.setdefault(key, expr)


def make_atom(kind: AtomKind, name: str, args: tuple[Expr, ...]) -> Atom:
    """The atom itself, without normalisation; only constructors of normal forms call it."""
    key = (kind, name, args)
    found = _ATOMS.get(key)
    if found is not None:
        return found
    depth = 0 if kind == "symbol" else 1 + max(arg.depth for arg in args)
    if depth > MAX_DEPTH:
        raise SymError(f"symbolic expression is nested more than {MAX_DEPTH} deep")
    atom = Atom.__new__(Atom)
    atom.kind, atom.name, atom.args, atom.depth, atom.quotient = kind, name, args, depth, None
    if kind == "symbol":
        atom.free_symbols = frozenset((name,))
        atom.key = (0, natural(name), name)
    else:
        atom.free_symbols = frozenset().union(*(arg.free_symbols for arg in args))
        atom.key = (1, _printing.atom_text(atom))
    # Atom and expression refer to each other, so a second thread must not see the one without the other.
    with _ATOMS_LOCK:
        found = _ATOMS.get(key)
        if found is not None:
            return found
        atom.expr = intern({(atom,): 1})
        _ATOMS[key] = atom
    return atom


def _from_pairs(pairs: Iterable[tuple[Monomial, int]]) -> Expr:
    return intern(dict(pairs))


def natural(name: str) -> tuple[str | int, ...]:
    """Split digits from letters so that `s2` sorts before `s10`; strings and ints alternate."""
    return tuple(int(part) if part.isdigit() else part for part in _DIGITS.split(name))


def _term_key(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    monomial, coefficient = term
    degree = len(monomial)
    # Names are compared only between products of one degree, so a single factor needs no tuple around its key.
    names = monomial[0].key if degree == 1 else tuple(atom.key for atom in monomial)
    return -degree, -abs(coefficient), names


def _atom_key(atom: Atom) -> tuple[Any, ...]:
    return atom.key


def symbol(name: str) -> Expr:
    """The symbol `name` (letters, digits, `_`, `$`, `.`; not one of the operator names)."""
    atom = _ATOMS.get(("symbol", name, ()))
    if atom is None:
        if not _NAME.match(name) or name in RESERVED:
            raise SymError(f"{name!r} is not a valid symbol name")
        atom = make_atom("symbol", name, ())
    return atom.expr


def const(value: int) -> Expr:
    """The constant `value`."""
    found = _CONSTANTS.get(value)
    if found is None:
        value = int(value)
        found = _CONSTANTS[value] = intern({(): value} if value else {})
    return found


def as_expr(value: Expr | int) -> Expr:
    """`value` as an expression; TypeError for anything but an int or an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int):
        return const(value)
    raise TypeError(f"expected an int or a symbolic expression, got {type(value).__name__}")


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """The product, in canonical order."""
    if not left or not right:
        return left or right
    if len(left) == 1 == len(right):
        return left + right if left[0].key <= right[0].key else right + left
    if len(left) + len(right) > MAX_DEGREE:
        raise SymError(f"symbolic product has more than {MAX_DEGREE} factors")
    return tuple(sorted(left + right, key=_atom_key))


def from_terms(terms: dict[Monomial, int]) -> Expr:
    """The expression with these terms, zeros allowed, recombined; consumes `terms`."""
    remainders = False
    cancelled: list[Monomial] = []
    for monomial, coefficient in terms.items():
        if not coefficient:
            cancelled.append(monomial)
        for atom in monomial:
            if atom.kind == "mod":
                remainders = True
    for monomial in cancelled:
        del terms[monomial]
    if remainders:
        _division.recombine(terms)
    return intern(terms)


def accumulate(terms: dict[Monomial, int], expr: Expr, factor: int = 1) -> None:
    """Add `factor * expr` to `terms`."""
    for monomial, coefficient in expr.terms:
        terms[monomial] = terms.get(monomial, 0) + factor * coefficient


@lru_cache(maxsize=1 << 15)
def add(left: Expr, right: Expr) -> Expr:
    """left + right"""
    terms = left.table.copy()
    for monomial, coefficient in right.terms:
        total = terms.get(monomial, 0) + coefficient
        if total:
            terms[monomial] = total
        else:
            del terms[monomial]
    return from_terms(terms) if left.has_mod or right.has_mod else intern(terms)


@lru_cache(maxsize=1 << 15)
def scale(expr: Expr, factor: int) -> Expr:
    """factor * expr; cheaper than `multiply`, because scaling keeps normal form."""
    if factor == 1 or not expr.terms:
        return expr
    if factor == 0:
        return ZERO
    return intern({monomial: coefficient * factor for monomial, coefficient in expr.terms})


@lru_cache(maxsize=1 << 15)
def multiply(left: Expr, right: Expr) -> Expr:
    """left * right"""
    if right._int is not None:
        return scale(left, right._int)
    if left._int is not None:
        return scale(right, left._int)
    if len(left.terms) * len(right.terms) > MAX_TERMS:
        raise SymError(f"symbolic product has more than {MAX_TERMS} terms")
    terms: dict[Monomial, int] = {}
    for left_monomial, left_coefficient in left.terms:
        for right_monomial, right_coefficient in right.terms:
            monomial = multiply_monomials(left_monomial, right_monomial)
            terms[monomial] = terms.get(monomial, 0) + left_coefficient * right_coefficient
    return from_terms(terms)


ZERO = const(0)
ONE = const(1)

# At the end: these modules build on the classes above, whose operators call back into them.
from . import division as _division  # noqa: E402
from . import printing as _printing  # noqa: E402
from . import traversal as _traversal  # noqa: E402
