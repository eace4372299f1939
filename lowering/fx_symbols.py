"""The symbols of a graph: where each comes from, and the expressions of torch's symbolic numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from ..dialects.sym import Expr, Ranges, SymbolAttr, SymbolDeclaration, const, simplify, symbol
from .fx_private import SymbolFacts, expression_facts, shape_env_of, symbol_facts, sympy_of
from .fx_sym import UnsupportedSymbol, from_symint, from_sympy


class SymbolTable:
    """Symbols by name, with their declarations.

    Arguments come first: `declare_arguments` chooses for each symbol the argument that gives its value. Ops then
    declare what they bring (`declare_results`). A number that is no integer polynomial gets a symbol of its own.
    """

    def __init__(self) -> None:
        self._declared: dict[str, SymbolDeclaration] = {}
        self._solved: dict[str, Expr] = {}
        """Symbols that no argument carries by itself, by what they are computed from."""
        self._named: dict[Any, Expr] = {}
        """SymPy expressions that have a symbol of their own."""
        self._known: dict[Any, Expr] = {}
        """Expressions that were asked for, by the SymPy expression."""
        self._ranges: tuple[int, Ranges] = (0, Ranges())
        """What is known of so many symbols."""

    @property
    def declarations(self) -> list[SymbolAttr]:
        """The function's symbols, for its `symbols` attribute."""
        return [SymbolAttr(declaration) for declaration in self._declared.values()]

    @property
    def has_own_names(self) -> bool:
        """Whether a symbol has a name that is not torch's: another table may give it to something else."""
        return bool(self._named or self._solved)

    def expr(self, value: int | torch.SymInt) -> Expr:
        """The expression of an integer of torch. Raises UnsupportedSymbol when there is none."""
        if isinstance(value, int):
            return const(value)
        key = sympy_of(value)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._expr_of(value, key)
        return known

    def _expr_of(self, value: torch.SymInt, expression: Any) -> Expr:
        if self._named:
            expression = expression.xreplace({key: _sympy_symbol(e) for key, e in self._named.items()})
            expr = from_sympy(expression).subs(self._solved)
        else:
            expr = from_symint(value).subs(self._solved)
        for name in expr.free_symbols:
            if name not in self._declared:
                raise UnsupportedSymbol(value, f"no argument and no op before gives {name}")
        # of `max(s0 floordiv 4, 1)`, a stride of torch's, what the guards leave of it: equal sizes look equal then
        return simplify(expr, self._known_ranges()) if expr.depth else expr

    def _known_ranges(self) -> Ranges:
        """What is known of the symbols that are declared."""
        count, ranges = self._ranges
        if count != len(self._declared):
            facts = self._declared.items()
            ranges = Ranges(
                {name: (each.min, each.max) for name, each in facts},
                {name: each.divisor for name, each in facts if each.divisor > 1},
            )
            self._ranges = (len(self._declared), ranges)
        return ranges

    def declare_arguments(self, values: Iterable[Any]) -> None:
        """Declare what the function's arguments (fake tensors and numbers) carry: integers, sizes, then strides."""
        sources = [source for number, value in enumerate(values) for source in _sources(number, value)]
        sources.sort(key=lambda source: source[1].stride is not None)
        composite: list[tuple[torch.SymInt, SymbolDeclaration]] = []
        for value, source in sources:
            expression = sympy_of(value)
            if not expression.is_Symbol:
                composite.append((value, source))
            elif expression.name not in self._declared:
                self._declare(value, expression, source)
        for value, source in composite:
            self._solve(value, source)

    def _declare(self, value: Any, expression: Any, source: SymbolDeclaration) -> None:
        facts = symbol_facts(shape_env_of(value), expression)
        self._declared[expression.name] = _declaration(expression.name, source, facts)

    def _solve(self, value: torch.SymInt, source: SymbolDeclaration) -> None:
        """When an argument is `4*s0 + 1` and none is `s0`: declare the whole, and compute the symbol from it."""
        try:
            expr = from_symint(value)
        except UnsupportedSymbol:
            self._name_expression(value, source)
            return
        unknown = [name for name in expr.free_symbols if name not in self._declared and name not in self._solved]
        if not unknown:
            return
        whole = self._name_expression(value, source)
        parts = expr.split(unknown) if len(unknown) == 1 else None
        if parts is not None and (factor := parts[0].get(unknown[0])) is not None:
            self._solved[unknown[0]] = (whole - parts[1].subs(self._solved)) // factor

    def _name_expression(self, value: torch.SymInt, source: SymbolDeclaration) -> Expr:
        expression = sympy_of(value)
        known = self._named.get(expression)
        if known is None:
            name = self._fresh_name()
            self._declared[name] = _declaration(name, source, expression_facts(value))
            known = self._named[expression] = symbol(name)
            self._known.clear()
        return known

    def _fresh_name(self) -> str:
        number = len(self._declared)
        while f"n{number}" in self._declared:
            number += 1
        return f"n{number}"

    def declare_results(self, values: Iterable[Any]) -> list[str]:
        """Declare the symbols that first appear in an op's results; returns their names."""
        names: list[str] = []
        for value in values:
            for number in _numbers(value):
                for expression in sorted(sympy_of(number).free_symbols, key=str):
                    name = expression.name
                    if name not in self._declared and name not in self._solved and expression.is_integer:
                        self._declare(number, expression, SymbolDeclaration(name))
                        names.append(name)
        return names

    def declare_number(self, value: torch.SymInt) -> str:
        """A symbol for an integer that is no integer polynomial; an op computes it. Returns the name."""
        return str(self._name_expression(value, SymbolDeclaration("n")))


def _declaration(name: str, source: SymbolDeclaration, facts: SymbolFacts) -> SymbolDeclaration:
    return replace(source, name=name, min=facts.min, max=facts.max, divisor=facts.divisor, hint=facts.hint)


def _sources(number: int, value: Any) -> Iterator[tuple[torch.SymInt, SymbolDeclaration]]:
    """The symbolic integers that an argument carries, with where."""
    if isinstance(value, torch.SymInt):
        yield value, SymbolDeclaration("", arg=number)
    elif isinstance(value, torch.Tensor) and value.layout is torch.strided:
        for dim, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                yield size, SymbolDeclaration("", arg=number, dim=dim)
        for dim, stride in enumerate(value.stride()):
            if isinstance(stride, torch.SymInt):
                yield stride, SymbolDeclaration("", arg=number, stride=dim)


def _numbers(value: Any) -> Iterator[torch.SymInt]:
    """The symbolic integers in a result: itself, or its sizes and strides."""
    return (number for number, _ in _sources(0, value))


def _sympy_symbol(expr: Expr) -> Any:
    import sympy

    return sympy.Symbol(str(expr), integer=True)
