"""Kernels of a GPU beside each other in one: which may be, and how each gets programs of its own there."""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO
from ..analysis.effects import independent_nests, needed_by
from ..analysis.loops import fresh_axis, loops_in, ops_in
from .gpu_legality import must_be_serial
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
