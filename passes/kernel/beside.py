"""Kernels of a GPU beside each other in one: which may be, and how each gets programs of its own there."""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO
from ..analysis.loops import fresh_axis, is_loop, loops_in, ops_in
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from .gpu_legality import independent_nests, must_be_serial, needed_by
from .simplify_block import is_pure


def may_stand_beside(function: kernel.FuncOp) -> bool:
    """Whether a kernel keeps its parallelism among others: it is independent nests, or one program's work anyway.

    A kernel with an ordered store runs in one program, and so would all beside it.
    """
    block = function.body.block
    if any(must_be_serial(op) for op in ops_in(function)):
        return False
    apart = independent_nests(block)
    return not apart or all(op in apart or isinstance(op, _PLAIN) or is_pure(op) for op in block.ops)


_PLAIN = (kernel.LoadOp, kernel.YieldOp)


def lay_beside(function: kernel.FuncOp, block: Block, values: dict[SSAValue, SSAValue], taken: set[str]) -> None:
    """Append what a kernel does to the block of another, as nests that need nothing around them.

    Each computes for itself what it needs; what has no nest runs in one of a single iteration. `values` maps the
    kernel's buffers to those of the other one, `taken` are the names of all axes.
    """
    old = function.body.block
    apart = independent_nests(old)
    if not apart:
        body = Block()
        for op in old.ops:
            body.add_op(op.clone(values))
        axis = fresh_axis(taken)
        block.add_op(kernel.ForOp.of(axis, ZERO, ONE, Region(body), location=function.location))
        return
    for op in old.ops:
        if op in apart:
            needed, own = needed_by(op, old), dict(values)
            inside = [each.clone(own) for each in old.ops if each in needed]
            nest = op.clone(own)
            first = nest.regions[0].block.first_op
            assert first is not None
            nest.regions[0].block.insert_ops_before(inside, first)
            block.add_op(nest)


def reduces(function: kernel.FuncOp) -> bool:
    """Whether a kernel reduces or scans: its programs then want more threads than those of others."""
    return any(not isinstance(op, kernel.ForOp) for op in loops_in(function.body.block))


def bytes_of_block(block: Block, sizes: Sizes) -> int:
    """Bytes that a block reads and writes, each place of a buffer once for reading and once for writing."""
    moved: dict[tuple[SSAValue, bool], int] = {}
    _add_accesses(block, sizes, 1, moved)
    return sum(min(each, _length(buffer, sizes)) for (buffer, _), each in moved.items())


def _length(buffer: SSAValue, sizes: Sizes) -> int:
    """Bytes of a buffer in memory; a local one takes none."""
    type_ = buffer.type
    assert isinstance(type_, kernel.BufferType)
    return 0 if type_.local else sizes.of(type_.extent) * element_bytes(type_)


def _add_accesses(block: Block, sizes: Sizes, runs: int, moved: dict[tuple[SSAValue, bool], int]) -> None:
    for op in block.ops:
        if type(op) is kernel.LoadOp or type(op) is kernel.StoreOp:
            key = op.buffer, type(op) is kernel.StoreOp
            moved[key] = moved.get(key, 0) + runs * element_bytes(key[0].type)
        inner = runs * sizes.trips(op) if is_loop(op) else runs
        for region in op.regions:
            _add_accesses(region.block, sizes, inner, moved)
