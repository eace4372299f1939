"""What is known of the symbols of kernels, from the launches in the same module and the symbols that functions declare."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from xdsl.dialects.builtin import ModuleOp

from ...dialects import host, kernel
from ...dialects.sym import Expr, Ranges, bounds
from ...dialects.sym.intervals import Interval

_MOST_USEFUL_DIVISOR = 1024


def launch_ranges(module: ModuleOp) -> dict[str, Ranges]:
    """Kernel name -> ranges and divisors of its symbols that hold at every launch; no entry for one never launched."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, kernel.FuncOp)}
    values: dict[str, list[tuple[tuple[Expr, ...], Ranges]]] = {}
    for program in module.ops:
        if isinstance(program, host.FuncOp):
            ranges = _declared(program.symbols)
            for op in program.body.block.ops:
                if isinstance(op, host.LaunchOp):
                    name = op.kernel.root_reference.data
                    values.setdefault(name, []).append((op.symbols.data, ranges))
    return {name: _joined(kernels[name], found) for name, found in values.items() if name in kernels}


@lru_cache(maxsize=16)
def _declared(symbols) -> Ranges:  # pyright: ignore[reportMissingParameterType]
    return Ranges.of_symbols(s.data for s in symbols.data)


def _joined(function: kernel.FuncOp, launches: list[tuple[tuple[Expr, ...], Ranges]]) -> Ranges:
    """The hull of the intervals, and the common divisor, of what the launches pass for each symbol."""
    intervals: dict[str, Interval] = {}
    divisors: dict[str, int] = {}
    for position, name in enumerate(s.data for s in function.symbols.data):
        passed = [(exprs[position], ranges) for exprs, ranges in launches]
        lows, highs = zip(*(bounds(expr, ranges) for expr, ranges in passed), strict=True)
        intervals[name] = (
            None if None in lows else min(lows),
            None if None in highs else max(highs),
        )
        divisor = gcd(*(divisor_of(expr, ranges) for expr, ranges in passed))
        if divisor > 1:
            divisors[name] = divisor
    return Ranges(intervals, divisors)


def divisor_of(expr: Expr, ranges: Ranges) -> int:
    """A positive integer that divides every value of an expression; 0 for an expression that is 0."""
    common = 0
    for monomial, coefficient in expr.terms:
        divisor = abs(coefficient)
        for atom in monomial:
            if atom.kind == "symbol":
                divisor *= ranges.divisors.get(atom.name, 1)
        common = gcd(common, divisor)
    return min(common, _MOST_USEFUL_DIVISOR) if common & (common - 1) == 0 else common
