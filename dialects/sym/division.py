"""Normal forms of floor division and modulo that hold for all integers, without knowing ranges.

With constants k, a, b > 0 the laws are

    (k*q + r) floordiv k        == q + r floordiv k             (k*q + r) mod k   == r mod k
    (g*x + c) floordiv (g*k)    == (x + c floordiv g) floordiv k
    (g*x + c) mod (g*k)         == g*((x + c floordiv g) mod k) + c mod g
    (n + x floordiv a) floordiv b == (a*n + x) floordiv (a*b)
    (-x) floordiv k             == -((x + k - 1) floordiv k)    (-x) mod k        == k - 1 - (x - 1) mod k
    (x mod (a*b)) floordiv a    == (x floordiv a) mod b
    (y + c*(x mod m)) mod k     == (y + c*x) mod k              when k divides c*m
    c*k*(x floordiv k) + c*(x mod k) == c*x
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from . import polynomial as p
from .errors import SymError
from .polynomial import Expr, Monomial


@lru_cache(maxsize=1 << 15)
def floordiv(dividend: Expr, divisor: Expr) -> Expr:
    """floor(dividend / divisor) in normal form. Raises SymError when the divisor is zero."""
    k = divisor.as_int()
    if k is None:
        return _floordiv_symbolic(dividend, divisor)
    if k == 0:
        raise SymError(f"division by zero: ({dividend}) floordiv 0")
    return _floordiv_const(dividend, k) if k > 0 else _floordiv_const(-dividend, -k)


@lru_cache(maxsize=1 << 15)
def mod(dividend: Expr, divisor: Expr) -> Expr:
    """dividend - divisor * (dividend floordiv divisor) in normal form. SymError for a zero divisor."""
    k = divisor.as_int()
    if k is None:
        return _mod_symbolic(dividend, divisor)
    if k == 0:
        raise SymError(f"division by zero: ({dividend}) mod 0")
    return _mod_const(dividend, k) if k > 0 else -_mod_const(-dividend, -k)


def ceildiv(dividend: Expr | int, divisor: Expr | int) -> Expr:
    """ceil(dividend / divisor), expressed by floor division."""
    dividend, divisor = p.as_expr(dividend), p.as_expr(divisor)
    k = divisor.as_int()
    if k is not None and k > 0:
        return floordiv(dividend + (k - 1), divisor)
    return -floordiv(-dividend, divisor)


def _reduce(dividend: Expr, k: int) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """Quotient and rest of every coefficient by k > 0.

    The rest keeps its sign, so that `-i0` stays as it is, except the constant, which ends in [0, k).
    """
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in dividend.terms:
        if not monomial or coefficient >= 0:
            whole, part = divmod(coefficient, k)
        else:
            whole, part = -(-coefficient // k), -(-coefficient % k)
        if whole:
            quotient[monomial] = whole
        if part:
            rest[monomial] = part
    return quotient, rest


def _take_common_factor(rest: Expr, k: int) -> tuple[Expr, int]:
    """Divide the coefficients by their common factor with k, returned too; the constant is rounded down."""
    factor = gcd(k, *(coefficient for monomial, coefficient in rest.terms if monomial))
    if factor == 1:
        return rest, 1
    divided = {monomial: coefficient // factor for monomial, coefficient in rest.terms}
    if divided.get((), 1) == 0:
        del divided[()]
    return p.intern(divided), factor


def _floordiv_const(dividend: Expr, k: int) -> Expr:
    if k == 1:
        return dividend
    quotient, rest = _reduce(dividend, k)
    return p.add(p.from_terms(quotient), _floordiv_rest(p.from_terms(rest), k))


def _floordiv_rest(rest: Expr, k: int) -> Expr:
    """`rest floordiv k` where rest came out of `_reduce`."""
    if rest.is_constant:
        return p.ZERO
    reduced, factor = _take_common_factor(rest, k)
    k //= factor
    merged = _merge_nested(reduced, k)
    if merged is not None:
        return merged
    if reduced.terms[0][1] < 0:
        return -floordiv(-reduced + (k - 1), p.const(k))
    if not _is_reduced(reduced, k):
        return floordiv(reduced, p.const(k))
    return p.make_atom("floordiv", "", (reduced, p.const(k))).expr


def _is_reduced(rest: Expr, k: int) -> bool:
    """Whether `_reduce` would change nothing. Recombined terms may have grown beyond k."""
    return all(-k < c < k if m else 0 <= c < k for m, c in rest.terms)


def _merge_nested(rest: Expr, k: int) -> Expr | None:
    """`rest floordiv k` where rest has a quotient with coefficient 1, or is a single remainder; else None."""
    for monomial, coefficient in rest.terms:
        if coefficient != 1 or len(monomial) != 1:
            continue
        atom = monomial[0]
        inner = atom.args[1].as_int() if atom.kind in ("floordiv", "mod") else None
        if inner is None:
            continue
        if atom.kind == "floordiv":
            return floordiv((rest - atom.expr) * inner + atom.args[0], p.const(k * inner))
        if len(rest.terms) == 1 and inner % k == 0:
            return mod(floordiv(atom.args[0], p.const(k)), p.const(inner // k))
    return None


def _mod_const(dividend: Expr, k: int) -> Expr:
    if k == 1:
        return p.ZERO
    if dividend.has_mod:
        dividend = _drop_inner_mod(dividend, k)
    rest = p.from_terms(_reduce(dividend, k)[1])
    if rest.is_constant:
        return rest
    reduced, factor = _take_common_factor(rest, k)
    if factor > 1:
        return mod(reduced, p.const(k // factor)) * factor + rest.table.get((), 0) % factor
    if reduced.terms[0][1] < 0:
        return (k - 1) - mod(-reduced - 1, p.const(k))
    if not _is_reduced(reduced, k):
        return mod(reduced, p.const(k))
    return p.make_atom("mod", "", (reduced, p.const(k))).expr


def _drop_inner_mod(dividend: Expr, k: int) -> Expr:
    """Replace `c*(x mod m)` by `c*x` where k divides c*m."""
    terms: dict[Monomial, int] = {}
    changed = False
    for monomial, coefficient in dividend.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        inner = atom.args[1].as_int() if atom is not None and atom.kind == "mod" else None
        if atom is not None and inner is not None and coefficient * inner % k == 0:
            p.accumulate(terms, atom.args[0], coefficient)
            changed = True
        else:
            terms[monomial] = terms.get(monomial, 0) + coefficient
    # What was inside may be a remainder again, or recombine into one.
    return _drop_inner_mod(p.from_terms(terms), k) if changed else dividend


def _signed_and_reduced(dividend: Expr, divisor: Expr) -> tuple[Expr, Expr, int]:
    """Divide both by their common integer factor, signed to make the divisor lead positive; returned last."""
    factor = gcd(*(c for _, c in dividend.terms), *(c for _, c in divisor.terms))
    if divisor.terms[0][1] < 0:
        factor = -factor
    if factor == 1:
        return dividend, divisor, 1
    return divide_exactly(dividend, factor), divide_exactly(divisor, factor), factor


def divide_exactly(expr: Expr, k: int) -> Expr:
    """expr / k where k divides every coefficient."""
    return p.intern({monomial: coefficient // k for monomial, coefficient in expr.terms})


def _floordiv_symbolic(dividend: Expr, divisor: Expr) -> Expr:
    dividend, divisor, _ = _signed_and_reduced(dividend, divisor)
    return p.make_atom("floordiv", "", (dividend, divisor)).expr


def _mod_symbolic(dividend: Expr, divisor: Expr) -> Expr:
    dividend, divisor, factor = _signed_and_reduced(dividend, divisor)
    return p.make_atom("mod", "", (dividend, divisor)).expr * factor


def recombine(terms: dict[Monomial, int]) -> None:
    """Apply `c*k*(x floordiv k) + c*(x mod k) == c*x` in place, until no pair is left.

    Only where the coefficients match: taking part of `8*(x floordiv 4) + x mod 4` would give
    `x + 4*(x floordiv 4)`, which hides from a division by 8 that the remainder is below 4.
    """
    while _recombine_one(terms):
        pass


def _recombine_one(terms: dict[Monomial, int]) -> bool:
    candidates = [m for m in terms for atom in m if atom.kind == "mod"]
    if len(candidates) > 1:
        # Products of remainders may pair in two ways; the choice must not depend on the order of construction.
        candidates.sort(key=lambda monomial: (len(monomial), *(atom.key for atom in monomial)))
    for monomial in candidates:
        for position, atom in enumerate(monomial):
            if atom.kind != "mod":
                continue
            others = monomial[:position] + monomial[position + 1 :]
            coefficient = terms[monomial]
            partner = _partner(terms, others, coefficient, atom)
            if partner is None:
                continue
            for paired in (monomial, *partner):
                del terms[paired]
            for inner, inner_coefficient in atom.args[0].terms:
                product = p.multiply_monomials(others, inner)
                total = terms.get(product, 0) + coefficient * inner_coefficient
                if total:
                    terms[product] = total
                else:
                    del terms[product]
            return True
    return False


def _partner(terms: dict[Monomial, int], others: Monomial, coefficient: int, atom: p.Atom) -> list[Monomial] | None:
    """The terms of `coefficient * others * k * (x floordiv k)` if `terms` has exactly these."""
    if atom.quotient is None:
        atom.quotient = floordiv(*atom.args)
    quotient = atom.quotient.as_atom
    if quotient is None:
        return None
    outer = p.multiply_monomials(others, (quotient,))
    found: list[Monomial] = []
    for factor, factor_coefficient in atom.args[1].terms:
        monomial = p.multiply_monomials(outer, factor)
        if terms.get(monomial) != coefficient * factor_coefficient:
            return None
        found.append(monomial)
    return found
