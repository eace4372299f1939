"""Loop transformations that schedules are made of: interchange, blocking, unrolling, linearisation.

They only rewrite: whoever calls them answers for the kernel computing the same. `schedules.py` has the same for people,
with checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import ZERO, Expr, MapAttr, SymAttr, as_expr, ceildiv, smin, symbol
from ..analysis.loops import Loop, fresh_axis, substitute_axes


def set_mapping(op: Loop, mapping: str, tile: int | None = None) -> None:
    """Map an axis; `tile` as in `kernel.for`."""
    op.properties["mapping"] = StringAttr(mapping)
    if tile is None:
        op.properties.pop("tile", None)
    else:
        op.properties["tile"] = IntegerAttr(tile, i64)


def perfect_chain(op: kernel.ForOp) -> list[kernel.ForOp]:
    """`op` and the `for` loops that are nested in it with nothing beside them, outermost first."""
    chain = [op]
    while True:
        body = chain[-1].body.block
        inner = body.first_op
        if not isinstance(inner, kernel.ForOp) or inner.next_op is not body.last_op:
            return chain
        chain.append(inner)


def reduction_chain(op: kernel.ReduceOp) -> list[kernel.ReduceOp]:
    """The reductions, outermost first, that only pass on what the next one combines. Only the last may have a tile."""
    chain = [op]
    while chain[-1].tile is None:
        outer = chain[-1]
        inner = outer.body.block.first_op
        if not isinstance(inner, kernel.ReduceOp) or inner.next_op is not outer.body.block.last_op:
            break
        if inner.combiners != outer.combiners or inner.combine is not None:
            break
        if yielded(outer.body) != tuple(inner.results):
            break
        chain.append(inner)
    return chain


def join_reductions(chain: Sequence[kernel.ReduceOp], names: set[str]) -> kernel.ReduceOp:
    """A chain of reductions, all from 0, as one over all their iterations."""
    outer, body = chain[0], chain[-1].body.block
    parent = outer.parent
    assert parent is not None
    (axis, lo, hi), values = linearise([range_of(loop) for loop in chain], names)
    chain[-1].body.detach_block(body)
    substitute_axes(body, values)
    combiners = [c.data for c in outer.combiners]
    joined = kernel.ReduceOp.of(axis, lo, hi, combiners, Region(body), location=outer.location)
    parent.insert_op_before(joined, outer)
    for old, new in zip(outer.results, joined.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    parent.erase_op(outer, safe_erase=False)
    return joined


Range = tuple[str, Expr, Expr]


def range_of(op: Loop) -> Range:
    """Axis, lower and upper bound."""
    return op.axis.data, op.lo.data, op.hi.data


def rebuild_chain(chain: Sequence[kernel.ForOp], ranges: Sequence[Range]) -> list[kernel.ForOp]:
    """Run the body of a perfect chain inside other loops, outermost first; the old ones are gone.

    All loops are serial at first. The caller answers for the body seeing the same iterations.
    """
    outer, body = chain[0], chain[-1].body.block
    chain[-1].body.detach_block(body)
    parent = outer.parent
    assert parent is not None
    loops: list[kernel.ForOp] = []
    for position, (axis, lo, hi) in enumerate(reversed(ranges)):
        loop = kernel.ForOp.of(axis, lo, hi, Region(body), location=outer.location)
        loops.insert(0, loop)
        if position < len(ranges) - 1:
            body = Block([loop, kernel.YieldOp.create()])
    parent.insert_op_before(loops[0], outer)
    parent.erase_op(outer, safe_erase=False)
    return loops


def permute_loops(chain: Sequence[Loop], order: Sequence[Loop]) -> None:
    """Let nested loops run each other's ranges, so that they stand in an order; the ops stay where they are.

    Mappings and tiles go with the ranges.
    """
    wanted = [{name: loop.properties.get(name) for name in _OF_AXIS} for loop in order]
    for loop, properties in zip(chain, wanted, strict=True):
        for name, value in properties.items():
            if value is None:
                loop.properties.pop(name, None)
            else:
                loop.properties[name] = value


#: what a loop says of its axis
_OF_AXIS = ("axis", "lo", "hi", "mapping", "tile", "unroll")


def copy_body(body: Block, axes: Mapping[str, Expr], parent: Block, before: Operation) -> tuple[SSAValue, ...]:
    """Insert a copy of a body for one point of its axes in front of an op; what it yields."""
    mapping: dict[SSAValue, SSAValue] = {}
    copies = Block([op.clone(mapping) for op in body.ops if not isinstance(op, kernel.YieldOp)])
    substitute_axes(copies, axes)
    for op in list(copies.ops):
        op.detach()
        parent.insert_op_before(op, before)
    last = body.last_op
    assert last is not None
    return tuple(mapping.get(value, value) for value in last.operands)


def fill_local(
    local: kernel.LocalOp, place: Expr, load: kernel.LoadOp, index: Expr, axes: Sequence[Range], lanes: int = 0
) -> kernel.ForOp:
    """Loops over axes, outermost first, that copy elements of the buffer that a load reads: `local[place] = [index]`.

    lanes: of the innermost one; 0: it is serial
    """
    value = kernel.LoadOp.of(load.buffer, MapAttr.of(index), location=load.location)
    store = kernel.StoreOp.of(value.value, local.buffer, MapAttr.of(place), location=load.location)
    body = Block([value, store, kernel.YieldOp.create()])
    for axis in reversed(axes[1:]):
        loop = kernel.ForOp.of(*axis, Region(body), location=load.location)
        if lanes:
            set_mapping(loop, "vector", lanes)
            lanes = 0
        body = Block([loop, kernel.YieldOp.create()])
    return kernel.ForOp.of(*axes[0], Region(body), location=load.location)


def read_local(load: kernel.LoadOp, local: kernel.LocalOp, place: Expr) -> None:
    """Let a load read a place of a local buffer instead."""
    block = load.parent
    assert block is not None
    new = kernel.LoadOp.of(local.buffer, MapAttr.of(place), location=load.location)
    block.insert_op_before(new, load)
    load.value.replace_all_uses_with(new.value)
    block.erase_op(load)


def strip_mine_reduction(op: kernel.ReduceOp, size: int, names: set[str]) -> list[kernel.ReduceOp]:
    """Reduce block by block: a reduction over the results of a reduction within each block. Both are returned."""
    blocks, within = block_range(range_of(op), size, names)
    block, parent = op.body.block, op.parent
    assert parent is not None
    op.body.detach_block(block)
    combiners = [each.data for each in op.combiners]
    inner = kernel.ReduceOp.of(*within, combiners, Region(block), location=op.location)
    body = Block([inner, kernel.YieldOp.create(operands=inner.results)])
    outer = kernel.ReduceOp.of(*blocks, combiners, Region(body), location=op.location)
    parent.insert_op_before(outer, op)
    for old, new in zip(op.results, outer.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    parent.erase_op(op, safe_erase=False)
    return [outer, inner]


def append_body(body: Block, other: Block) -> None:
    """Move what one block does behind what another does, in front of its terminator."""
    last = body.last_op
    assert last is not None
    for op in list(other.ops):
        if op is not other.last_op:
            op.detach()
            body.insert_op_before(op, last)


def block_range(axis: Range, size: int, names: set[str]) -> tuple[Range, Range]:
    """Split a range into blocks: (range of the blocks, range within a block). The last block may be shorter."""
    name, lo, hi = axis
    block = fresh_axis(names)
    length = hi - lo
    start = symbol(block) * size + lo
    end = start + size
    constant = length.as_int()
    if constant is None or constant % size:
        end = smin(end, hi)
    return (block, ZERO, ceildiv(length, as_expr(size))), (name, start, end)


def linearise(axes: Sequence[Range], names: set[str]) -> tuple[Range, dict[str, Expr]]:
    """One axis for several that start at 0, and what the old axes are in terms of it."""
    name = fresh_axis(names)
    rest: Expr = symbol(name)
    values: dict[str, Expr] = {}
    total = as_expr(1)
    for axis, _, size in reversed(axes[1:]):
        if size is ZERO:  # an axis without iterations: nothing runs, whatever the others are
            return (name, ZERO, ZERO), {each: ZERO for each, _, _ in axes}
        values[axis] = rest % size
        rest = rest // size
        total = total * size
    values[axes[0][0]] = rest
    return (name, ZERO, total * axes[0][2]), values


def set_range(op: Loop, axis: Range) -> None:
    """Give a loop another range."""
    op.properties["axis"] = StringAttr(axis[0])
    op.properties["lo"] = SymAttr.of(axis[1])
    op.properties["hi"] = SymAttr.of(axis[2])
