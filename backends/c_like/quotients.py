"""Quotients and rests of indices that do not change in a loop get a name in front of it.

A division by a size that is a symbol may trap, so that a C compiler leaves it in the loop, where it also keeps the loop
from being vectorised: the sum of exponentials of a channels-last image of unknown size took 42 ms, and 6 ms so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.access import dynamic_name
from ...dialects.sym import Expr, bounds
from ...dialects.sym.expr import Atom
from .context import LANE, Context
from .statements import Loop, is_loop


def name_quotients(context: Context, op: Loop) -> None:
    """Declare a constant for each quotient in a loop that divides by symbols, where everything in it is known here."""
    if context.checked or not context.has_symbols:
        return
    for atom in _quotients(op, context.divisions):
        if atom not in context.quotients and atom.free_symbols <= context.symbols.keys() - {LANE}:
            text = context.index(atom.expr)
            least, _ = bounds(atom.args[1], context.ranges)
            if least is None or least < 1:  # the loop may not run, and what it divides by may be 0 then
                text = f"{context.index(atom.args[1])} == 0 ? 0 : {text}"
            name = context.names.fresh("quotient" if atom.kind == "floordiv" else "rest")
            context.out.line(f"const int64_t {name} = {text};")
            context.quotients[atom] = name


def _quotients(op: Operation, known: dict[Operation, tuple[Atom, ...]]) -> tuple[Atom, ...]:
    """The quotients of an op and what it holds, those that stand in others first; `known` has those of inner loops."""
    found = known.get(op)
    if found is None:
        inner = (each for region in op.regions for block in region.blocks for each in block.ops)
        atoms = dict.fromkeys((*_own(op), *(atom for each in inner for atom in _quotients(each, known))))
        found = tuple(atoms)
        if op.regions:
            known[op] = found
    return found


def _own(op: Operation) -> Iterator[Atom]:
    if is_loop(op):
        yield from _in([op.lo.data, op.hi.data])
    elif isinstance(op, kernel.IndexOp):
        yield from _without(op, _in([op.expr.data]))
    elif isinstance(op, kernel.LoadOp | kernel.StoreOp):
        yield from _without(op, _in(op.map.data))


def _without(op: kernel.IndexOp | kernel.LoadOp | kernel.StoreOp, atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms without those of values that the op names itself."""
    own = {dynamic_name(number) for number in range(len(op.dynamic))}
    return (atom for atom in atoms if own.isdisjoint(atom.free_symbols))


def _in(exprs: Iterable[Expr]) -> Iterator[Atom]:
    for expr in exprs:
        for monomial, _ in expr.terms:
            for atom in monomial:
                if atom.kind != "symbol":
                    yield from _in(atom.args)
                if atom.kind in ("floordiv", "mod") and atom.args[1].as_int() is None:
                    yield atom
