"""Loop transformations for those who write passes or schedules: each checks that a kernel computes the same afterwards.

    from inductile.passes.kernel import schedules

    rows, columns, row, column = schedules.tile([i, j], [4, 64])
    schedules.vectorize(column, 16)
    schedules.parallelize(rows)

A transformation that may change what is computed raises `IllegalTransformError`, says by which dependence, and changes
nothing. Those of `transforms.py` only rewrite, for passes that know better. Dependences are those of `dependences.py`;
`axes.substitute_axes` puts expressions in the place of axes in index maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, Region

from ...dialects import kernel
from ...dialects.sym import ZERO, symbol
from ...errors import UserError
from ..analysis.dependences import Dependence, carried_dependence, dependences
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop, fresh_axis, is_loop, kernel_names, loops_around, loops_in, named_in_bounds
from .merge_loops import can_fuse, fuse_loops
from .simplify_block import BlockSimplifier, remove_dead
from .transforms import (
    block_range,
    copy_body,
    perfect_chain,
    permute_loops,
    range_of,
    rebuild_chain,
    reduction_chain,
    set_mapping,
    set_range,
    strip_mine_reduction,
)


class IllegalTransformError(UserError):
    """A transformation that would change what a kernel computes, or that does not fit the loops it is given."""


def interchange(loops: Sequence[Loop], order: Sequence[int]) -> list[Loop]:
    """Let loops that are right inside each other stand in another order, outermost first; the loops in that order.

    Legal where no dependence would run backwards, and no loop says how far one runs that would be around it.
    """
    _check_nested(loops)
    wanted = [loops[position] for position in order]
    for position, loop in enumerate(wanted):
        inside = {each.axis.data for each in wanted[position + 1 :]}
        if not named_in_bounds([loop]).isdisjoint(inside):
            raise IllegalTransformError(f"the range of {_name(loop)} depends on a loop that would be inside of it")
    for each in _kept_orders(loops):
        for vector in each.directions:
            if _sign(vector) != _sign([vector[position] for position in order]):
                raise IllegalTransformError(f"a dependence would run backwards: {each}")
    permute_loops(loops, wanted)
    return list(loops)


def tile(loops: Sequence[Loop], sizes: Sequence[int]) -> list[Loop]:
    """Run loops that are right inside each other block by block: the loops over blocks, then those within a block.

    One loop alone may always be (strip-mining), a reduction too; several where all their orders are legal.
    """
    _check_nested(loops)
    _check_serial(loops)
    names = kernel_names(_kernel_of(loops[0]))
    first = loops[0]
    if isinstance(first, kernel.ReduceOp) and len(loops) == 1:
        if first.combine is not None:
            raise IllegalTransformError(f"{_name(first)} has a combination of its own, which only runs in order")
        return [*strip_mine_reduction(first, sizes[0], names)]
    chain = [loop for loop in loops if isinstance(loop, kernel.ForOp)]
    if len(chain) < len(loops):
        raise IllegalTransformError("reductions are tiled one by one")
    if not named_in_bounds(chain).isdisjoint(loop.axis.data for loop in chain) and len(chain) > 1:
        raise IllegalTransformError("the range of one of the loops depends on another one of them")
    for each in _kept_orders(chain) if len(chain) > 1 else ():
        if any({"<", ">"} <= set(vector) for vector in each.directions):
            raise IllegalTransformError(f"blocks would run before what they depend on: {each}")
    split = [block_range(range_of(loop), size, names) for loop, size in zip(chain, sizes, strict=True)]
    mappings = [loop.mapping.data for loop in chain]
    made = rebuild_chain(chain, [*(blocks for blocks, _ in split), *(within for _, within in split)])
    for loop, mapping in zip(made, mappings, strict=False):
        set_mapping(loop, mapping)
    return [*made]


def unroll(loop: Loop, factor: int) -> Loop:
    """Write out `factor` iterations of a loop; the loop that runs so many times less often. Always legal.

    What is left of an axis that is no multiple has a loop behind it. A reduction is told to be unrolled.
    """
    _check_serial([loop])
    if isinstance(loop, kernel.ScanOp):
        raise IllegalTransformError(f"{_name(loop)} is a scan, which hands its value from one iteration to the next")
    if isinstance(loop, kernel.ReduceOp):
        loop.properties["unroll"] = IntegerAttr(factor, i64)
        return loop
    (axis, lo, hi), parent = range_of(loop), loop.parent
    assert parent is not None
    block = fresh_axis(kernel_names(_kernel_of(loop)))
    length = (hi - lo).as_int()
    if length is not None and length < factor:
        raise IllegalTransformError(f"{_name(loop)} has {length} iterations, fewer than {factor}")
    count = (hi - lo) // factor
    rest = count * factor + lo
    body = Block([kernel.YieldOp.create()])
    last = body.last_op
    assert last is not None
    for position in range(factor):
        copy_body(loop.body.block, {axis: symbol(block) * factor + lo + position}, body, last)
    made = kernel.ForOp.of(block, ZERO, count, Region(body), location=loop.location)
    set_mapping(made, loop.mapping.data)
    parent.insert_op_before(made, loop)
    if rest is hi:
        parent.erase_op(loop)
    else:
        set_range(loop, (axis, rest, hi))
    return made


def unroll_and_jam(loop: Loop, factor: int) -> Loop:
    """Write out iterations, and let the loops in them that were one be one again: what they share is loaded once.

    Legal where the loops inside may be fused.
    """
    if not isinstance(loop, kernel.ForOp) or not any(map(is_loop, loop.body.block.ops)):
        raise IllegalTransformError(f"{_name(loop)} is no `kernel.for` with loops inside")
    _check_jam(loop)
    function, backup = _kernel_of(loop), loop.clone()
    count = sum(map(is_loop, loop.body.block.ops))
    made = unroll(loop, factor)
    try:
        _jam(made.body.block, count, kernel_names(function))
    except IllegalTransformError:
        _put_back(backup, [made, loop])
        raise
    BlockSimplifier(written_buffers(function.body.block)).run(made.body.block)
    remove_dead(made.body.block)
    return made


def _put_back(backup: kernel.ForOp, made: Sequence[Loop]) -> None:
    """Let a copy of a loop stand in place of what it became."""
    block = made[0].parent
    assert block is not None
    block.insert_op_before(backup, made[0])
    for op in made:
        if op.parent is block:
            block.erase_op(op)


def _check_jam(loop: kernel.ForOp) -> None:
    """Raise where iterations of a loop cannot run interleaved, loop by loop inside."""
    inner = [op for op in loop.body.block.ops if is_loop(op)]
    for op in loops_in(loop.body.block):
        if loop.axis.data in named_in_bounds([op]):
            raise IllegalTransformError(f"the range of {_name(op)} depends on {_name(loop)}")
    for op in inner:
        for each in _kept_orders([loop, op]):
            if any(_sign(vector) and {"<", ">"} <= set(vector) for vector in each.directions):
                raise IllegalTransformError(f"a dependence would run backwards: {each}")


def _jam(block: Block, count: int, names: set[str]) -> None:
    """Fuse the copies of each of `count` loops of a block, and those inside."""
    loops = [op for op in block.ops if is_loop(op)]
    copies = len(loops) // count
    for position in range(count):
        below = sum(is_loop(op) for op in loops[position].body.block.ops)
        fused = fuse(loops[position::count], names)
        if below and copies > 1:
            _jam(fused.body.block, below, names)


def fuse(loops: Sequence[Loop], names: set[str] | None = None) -> Loop:
    """Let loops of one block be one loop with the bodies of all. Legal where no iteration would read what a later one
    writes, or write what a later one still had to."""
    first = loops[0]
    for loop in loops[1:]:
        if loop.parent is not first.parent:
            raise IllegalTransformError(f"{_name(first)} and {_name(loop)} are not in one block, side by side")
        if (loop.lo, loop.hi, loop.mapping, loop.tile) != (first.lo, first.hi, first.mapping, first.tile):
            both = f"{_name(first)}, {_mapped(first)}, and {_name(loop)}, {_mapped(loop)}"
            raise IllegalTransformError(f"loops that become one have the same range, mapping and tile: here {both}")
    fused = fuse_loops(loops, kernel_names(_kernel_of(first)) if names is None else names)
    if fused is None:
        raise IllegalTransformError(_why_apart(loops))
    return fused


def _why_apart(loops: Sequence[Loop]) -> str:
    """Why loops of the same range cannot be one: for the first two of them that cannot."""
    if len(loops) < 2:
        return "one loop alone is not fused with anything"
    apart = next((pair for pair in combinations(loops, 2) if not can_fuse(pair)), (loops[0], loops[-1]))
    one, other = map(_name, apart)
    both = f"two copies of {one}" if one == other else f"{one} and {other}"
    combining = [loop for loop in apart if isinstance(loop, kernel.ReduceOp | kernel.ScanOp)]
    if len(combining) == 2 and any(loop.combine is not None for loop in combining):
        return f"{both} cannot be one: a combination of its own stands alone"
    return (
        f"{both} cannot be one: an iteration of the second, or an op between them, needs what the first has "
        "only at its end"
    )


def vectorize(loop: Loop, lanes: int) -> None:
    """Run an axis in lanes. Legal where its iterations do not depend on one another; a reduction where it commutes."""
    if isinstance(loop, kernel.ScanOp):
        raise IllegalTransformError(f"{_name(loop)} is a scan, which hands its value from one iteration to the next")
    if loop.mapping.data not in ("serial", "vector"):
        raise IllegalTransformError(f"{_name(loop)} is mapped to {loop.mapping.data} already")
    if any(each.mapping.data == "vector" for each in (*loops_around(loop), *loops_in(loop.body.block))):
        raise IllegalTransformError(f"another loop around {_name(loop)}, or inside of it, runs in lanes")
    if loop.axis.data in named_in_bounds(loops_in(loop.body.block)):
        raise IllegalTransformError(f"lanes run one loop together, and the range of one depends on {_name(loop)}")
    _check_independent(loop)
    set_mapping(loop, "vector", lanes)


def parallelize(loop: Loop, grain: int | None = None) -> None:
    """Let threads of a CPU share out the iterations of the outermost loop of a nest, at least `grain` each.

    Legal where they do not depend on one another.
    """
    if loops_around(loop):
        raise IllegalTransformError(f"{_name(loop)} is not the outermost loop of its nest, which threads share out")
    if not isinstance(loop, kernel.ForOp):
        raise IllegalTransformError(f"{_name(loop)} combines its iterations; `kernel.for` is what threads share out")
    if loop.mapping.data not in ("serial", "parallel"):
        raise IllegalTransformError(f"{_name(loop)} is mapped to {loop.mapping.data} already")
    _check_independent(loop)
    set_mapping(loop, "parallel", grain)


def map_loop(loop: Loop, mapping: str, size: int | None = None) -> None:
    """Map a loop as `kernel.for` says it. Legal where iterations that run at once then do not depend on one another."""
    if mapping == "parallel":
        return parallelize(loop, size)
    if mapping == "vector" and size is not None:
        return vectorize(loop, size)
    if mapping in ("grid", "vector"):
        if isinstance(loop, kernel.ScanOp) or (mapping == "grid" and not isinstance(loop, kernel.ForOp)):
            raise IllegalTransformError(f"{_name(loop)} is a {loop.name}, whose iterations are no programs")
        if mapping == "grid" and any(each.mapping.data != "grid" for each in loops_around(loop)):
            raise IllegalTransformError(f"a loop around {_name(loop)} is not mapped to the grid")
        _check_independent(loop)
    set_mapping(loop, mapping, size)


def _check_independent(loop: Loop) -> None:
    if isinstance(loop, kernel.ReduceOp) and loop.combine is not None:
        raise IllegalTransformError(f"{_name(loop)} has a combination of its own, which only runs in order")
    for op in loop.walk():
        if isinstance(op, kernel.StoreOp) and op.ordered is not None:
            raise IllegalTransformError("the last one of stores that may meet has to win: `ordered`")
    found = carried_dependence(loop)
    if found is not None and not _combines(found):
        raise IllegalTransformError(f"iterations of {_name(loop)} depend on one another: {found}")


def _combines(found: Dependence) -> bool:
    """Whether all that meets is combined in memory, whatever runs at once."""
    ops = (found.first, found.second)
    return all(isinstance(op, kernel.StoreOp) and op.atomic is not None for op in ops)


def _kept_orders(loops: Sequence[Loop]) -> list[Dependence]:
    """The dependences that an order of iterations has to keep: sums in memory may be added up in any order."""
    return [each for each in dependences(loops) if not _combines(each)]


def _sign(vector: Sequence[str]) -> str:
    """Which access comes first: that of the first direction that is not `=`."""
    return next((direction for direction in vector if direction != "="), "")


def _check_nested(loops: Sequence[Loop]) -> None:
    """Raise where loops are not right inside each other, outermost first."""
    first = loops[0]
    if isinstance(first, kernel.ScanOp):
        raise IllegalTransformError(f"{_name(first)} is a scan, which hands its value from one iteration to the next")
    chain: Sequence[Loop] = reduction_chain(first) if isinstance(first, kernel.ReduceOp) else perfect_chain(first)
    for loop, expected in zip(loops[1:], [*chain[1:], *[None] * len(loops)], strict=False):
        if loop is not expected:
            between = _beside(loop)
            what = f"`{between.name}` stands beside it" if between is not None else "loops of another kind are between"
            raise IllegalTransformError(f"{_name(loop)} is not right inside {_name(first)}: {what}")


def _beside(loop: Loop) -> Operation | None:
    block = loop.parent
    assert block is not None
    return next((op for op in block.ops if op is not loop and op is not block.last_op), None)


def _check_serial(loops: Sequence[Loop]) -> None:
    for loop in loops:
        if loop.mapping.data not in ("serial", "parallel") or loop.tile is not None:
            raise IllegalTransformError(f"{_name(loop)} is mapped to {loop.mapping.data} already; that comes last")


def _kernel_of(op: Operation) -> kernel.FuncOp:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kernel.FuncOp):
        parent = parent.parent_op()
    if parent is None:
        raise IllegalTransformError("the loop is in no kernel")
    return parent


def _name(loop: Loop) -> str:
    return f"the loop over {loop.axis.data} in {loop.lo.data} to {loop.hi.data}"


def _mapped(loop: Loop) -> str:
    tile = "" if loop.tile is None else f" in tiles of {loop.tile.value.data}"
    return f"mapped to {loop.mapping.data}{tile}"
