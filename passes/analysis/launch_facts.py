"""What is known for certain of the symbols of kernels, from their launches in the module."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import gcd

from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from ...dialects import host, kernel
from ...dialects.sym import Expr, Ranges, SymbolAttr, bounds
from ...dialects.sym.intervals import Interval
from .functions import kernels_of

Passed = tuple[Expr, Ranges]
"""What a launch passes for a symbol, and what its function knows of that expression."""


def launch_ranges(module: ModuleOp) -> dict[str, Ranges]:
    """Kernel name -> ranges and divisors of its symbols that hold at every launch; no entry for one never launched."""
    kernels = kernels_of(module)
    launches: dict[str, list[tuple[tuple[Expr, ...], Ranges]]] = {}
    for program in module.ops:
        if isinstance(program, host.FuncOp):
            ranges = _declared(program.symbols)
            for op in program.body.block.ops:
                if isinstance(op, host.LaunchOp):
                    launches.setdefault(op.kernel.root_reference.data, []).append((op.symbols.data, ranges))
    return {name: _joined(kernels[name], found) for name, found in launches.items() if name in kernels}


class LaunchFacts:
    """The facts of all kernels of a module, looked up when a kernel has symbols."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module

    @cached_property
    def _found(self) -> dict[str, Ranges]:
        return launch_ranges(self.module)

    def of(self, function: kernel.FuncOp) -> Ranges:
        """The facts of one kernel."""
        return self._found.get(function.sym_name.data, Ranges()) if function.symbols.data else Ranges()


@lru_cache(maxsize=16)
def _declared(symbols: ArrayAttr[SymbolAttr]) -> Ranges:
    return Ranges.of_symbols(s.data for s in symbols.data)


def _joined(function: kernel.FuncOp, launches: list[tuple[tuple[Expr, ...], Ranges]]) -> Ranges:
    """The hull of the intervals, and the common divisor, of what the launches pass for each symbol."""
    intervals: dict[str, Interval] = {}
    divisors: dict[str, int] = {}
    for position, symbol in enumerate(function.symbols):
        passed = [(values[position], ranges) for values, ranges in launches]
        intervals[symbol.data] = _hull(passed)
        divisor = gcd(*(_divisor(value, ranges) for value, ranges in passed))
        if divisor > 1:
            divisors[symbol.data] = divisor
    return Ranges(intervals, divisors)


def _hull(passed: list[Passed]) -> Interval:
    lows, highs = zip(*(bounds(value, ranges) for value, ranges in passed), strict=True)
    return (
        None if None in lows else min(lows),
        None if None in highs else max(highs),
    )


def _divisor(value: Expr, ranges: Ranges) -> int:
    """A number that divides every value of an expression; 0 for the expression 0."""
    common = 0
    for monomial, coefficient in value.terms:
        divisor = abs(coefficient)
        for atom in monomial:
            if atom.kind == "symbol":
                divisor *= ranges.divisors.get(atom.name, 1)
        common = gcd(common, divisor)
    return common
