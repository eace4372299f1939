"""Loops of a kernel and the axes that its expressions mention: lookup, substitution, fresh names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...dialects.raw import ops_in as ops_in
from ...dialects.raw import ops_of
from ...dialects.sym import Expr, MapAttr, SymAttr, symbol

Loop = kernel.ForOp | kernel.ReduceOp | kernel.ScanOp
Bound = tuple[Expr, Expr]

#: `isinstance` of an op that is none asks three abstract classes: it took a tenth of the kernel passes
_LOOPS = frozenset((kernel.ForOp, kernel.ReduceOp, kernel.ScanOp))


def is_loop(op: object) -> TypeGuard[Loop]:
    """Whether an op runs an axis."""
    return type(op) in _LOOPS


def loops_around(op: Operation, inside: Block | None = None) -> list[Loop]:
    """The loops around an op, or those of them that are inside of a block, outermost first."""
    path: list[Loop] = []
    block = op.parent
    while block is not None and block is not inside:
        parent = block.parent_op()
        if isinstance(parent, Loop):
            path.insert(0, parent)
        block = None if parent is None else parent.parent
    return path


def loops_in(block: Block) -> Iterator[Loop]:
    """All loops of a block, outer before inner."""
    for op in ops_of(block):
        if type(op) in _LOOPS:
            yield cast(Loop, op)
            for region in op.regions:
                yield from loops_in(region.block)


def flat_vector_loops(function: kernel.FuncOp) -> list[kernel.ForOp]:
    """The `for` loops of a kernel whose axis runs in SIMD lanes with no loop inside."""
    loops = (op for op in loops_in(function.body.block) if isinstance(op, kernel.ForOp))
    return [op for op in loops if op.mapping.data == "vector" and not any(map(is_loop, ops_of(op.body.block)))]


def nested_axes(op: Loop) -> dict[str, Bound]:
    """The axes of the loops inside a loop, without its own, with lower and upper bound."""
    return {
        inner.axis.data: (inner.lo.data, inner.hi.data) for region in op.regions for inner in loops_in(region.block)
    }


def axes_around(op: Operation, inside: Block | None = None) -> dict[str, Bound]:
    """The axes of those loops, with lower and upper bound."""
    return {loop.axis.data: (loop.lo.data, loop.hi.data) for loop in loops_around(op, inside)}


def named_in_bounds(loops: Iterable[Loop]) -> set[str]:
    """The axes and symbols that bounds of loops mention."""
    return {name for op in loops for bound in (op.lo, op.hi) for name in bound.data.free_symbols}


def kernel_names(function: kernel.FuncOp) -> set[str]:
    """Every symbol and axis name of a kernel."""
    return {s.data for s in function.symbols.data} | {op.axis.data for op in loops_in(function.body.block)}


def fresh_axis(taken: set[str]) -> str:
    """A new axis name `i0, i1, ...`; adds it to `taken`."""
    number = 0
    while (name := f"i{number}") in taken:
        number += 1
    taken.add(name)
    return name


def substitute_axes(block: Block, values: Mapping[str, Expr]) -> None:
    """Replace axes by expressions in every access, index and bound of a block, nested loops included."""
    for op in block.ops:
        if isinstance(op, kernel.LoadOp | kernel.StoreOp):
            index = op.map.data[0]
            if not index.free_symbols.isdisjoint(values):
                op.properties["map"] = MapAttr.of(index.subs(values))
        elif isinstance(op, kernel.IndexOp):
            op.properties["expr"] = SymAttr.of(op.expr.data.subs(values))
        elif isinstance(op, Loop):
            op.properties["lo"] = SymAttr.of(op.lo.data.subs(values))
            op.properties["hi"] = SymAttr.of(op.hi.data.subs(values))
            for region in op.regions:
                substitute_axes(region.block, values)


def rename_axes(op: Loop, names: Mapping[str, str]) -> None:
    """Rename axes in a loop and everything inside."""
    values = {old: symbol(new) for old, new in names.items()}
    if op.axis.data in names:
        op.properties["axis"] = StringAttr(names[op.axis.data])
    for region in op.regions:
        for inner in loops_in(region.block):
            if inner.axis.data in names:
                inner.properties["axis"] = StringAttr(names[inner.axis.data])
        substitute_axes(region.block, values)
