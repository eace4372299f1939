"""Canonical text: what `parse_text` reads back to the same object."""

from __future__ import annotations

from .polynomial import Atom, Expr, Monomial


def text_of(expr: Expr) -> str:
    """The sum, e.g. `4096*s0 + r0 - 1`."""
    if not expr.terms:
        return "0"
    pieces: list[str] = []
    for monomial, coefficient in expr.terms:
        term = _term_text(monomial, abs(coefficient))
        if pieces:
            pieces.append(f" - {term}" if coefficient < 0 else f" + {term}")
        else:
            pieces.append(f"-{_closed(term, monomial, coefficient)}" if coefficient < 0 else term)
    return "".join(pieces)


def atom_text(atom: Atom) -> str:
    """The atom without surrounding parentheses."""
    if atom.kind == "symbol":
        return atom.name
    if atom.kind in ("floordiv", "mod"):
        left, right = atom.args
        return f"{_operand(left)} {atom.kind} {_operand(right)}"
    return f"{atom.kind}({', '.join(map(str, atom.args))})"


def _closed(term: str, monomial: Monomial, coefficient: int) -> str:
    """`-` binds tighter than floordiv and mod."""
    return f"({term})" if coefficient == -1 and len(monomial) == 1 and _is_infix(monomial[0]) else term


def _term_text(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return str(coefficient)
    if coefficient == 1 and len(monomial) == 1:
        return atom_text(monomial[0])
    factors = [f"({atom_text(atom)})" if _is_infix(atom) else atom_text(atom) for atom in monomial]
    return "*".join(factors if coefficient == 1 else [str(coefficient), *factors])


def _is_infix(atom: Atom) -> bool:
    return atom.kind in ("floordiv", "mod")


def _operand(expr: Expr) -> str:
    """An operand of an infix operator, in parentheses unless it is a name, a call or a natural number."""
    atom = expr.as_atom
    value = expr.as_int()
    simple = (value is not None and value >= 0) or (atom is not None and not _is_infix(atom))
    return str(expr) if simple else f"({expr})"
