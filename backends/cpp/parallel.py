"""Loops over CPU threads."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from ...dialects import kernel
from ...dialects.sym import Expr, const
from . import memory
from .context import Context
from .lanes import lanes_may_not_meet
from .loops import LoopEmitter
from .statements import Loop, is_loop

#: A parallel region costs microseconds: without a grain in the IR, one thread runs loops with fewer elements.
GRAIN = 16384


def emit_parallel(emitter: LoopEmitter, op: kernel.ForOp) -> None:
    """Write an outermost parallel loop, together with the parallel loops that are alone inside each other."""
    context, chain = emitter.context, _chain(op)
    context.comment(op)
    condition = _worthwhile(context, chain)
    if condition == "false":
        return _nest(emitter, chain, "")
    clauses = f" if ({condition})" if condition else ""
    if any(isinstance(inner, kernel.AssertOp) for inner in op.walk()):
        clauses += " reduction(|: failed)"
    collapse = f" collapse({len(chain)})" if len(chain) > 1 else ""
    context.in_parallel = True
    hoisted = _heap_locals(chain)
    if hoisted:
        context.out.pragma(f"omp parallel{clauses}")
        with context.out.block(""):
            for local in hoisted:
                memory.declare_local(context, local)
            _nest(emitter, chain, f"omp for nowait{collapse}")
    else:
        body = list(chain[-1].body.block.ops)
        simd = " simd" if not any(map(is_loop, body)) and lanes_may_not_meet(body) else ""
        _nest(emitter, chain, f"omp parallel for{simd}{collapse}{clauses}")
    context.in_parallel = False


def _nest(emitter: LoopEmitter, chain: list[kernel.ForOp], pragma: str) -> None:
    context = emitter.context
    if pragma:
        context.out.pragma(pragma)
    with ExitStack() as stack:
        for loop in chain:
            name = context.name(loop.axis.data)
            lo, hi = context.index(loop.lo.data), context.index(loop.hi.data)
            stack.enter_context(context.out.block(f"for (int64_t {name} = {lo}; {name} < {hi.at(3)}; ++{name})"))
            stack.enter_context(context.axis(loop.axis.data, name, loop.lo.data, loop.hi.data))
        emitter.block(chain[-1].body.block)


def _worthwhile(context: Context, chain: list[kernel.ForOp]) -> str:
    """When to start threads, as C++; "" for always, "false" for never.

    The tile of a parallel loop is its grain: the fewest iterations worth a thread of their own.
    """
    grain = prod(loop.tile.value.data for loop in chain if loop.tile is not None)
    work, least = prod((_trip(loop) for loop in chain), start=const(1)), 2 * grain
    if all(loop.tile is None for loop in chain):
        work, least = _elements(chain[0], frozenset()), GRAIN
    total = work.as_int()
    if total is None:
        return f"{context.index(work).at(3)} >= {least}"
    return "" if total >= least else "false"


def _chain(op: kernel.ForOp) -> list[kernel.ForOp]:
    """The loop and the parallel loops that are alone inside each other, with ranges that do not depend on them."""
    chain, axes = [op], {op.axis.data}
    while True:
        inner = chain[-1].body.block.first_op
        if not isinstance(inner, kernel.ForOp) or not isinstance(inner.next_op, kernel.YieldOp):
            return chain
        if inner.mapping.data not in ("parallel", "grid"):
            return chain
        if axes & (inner.lo.data.free_symbols | inner.hi.data.free_symbols):
            return chain
        chain.append(inner)
        axes.add(inner.axis.data)


def _heap_locals(chain: list[kernel.ForOp]) -> list[kernel.LocalOp]:
    """Local buffers of the body that need the heap and whose size is the same in every iteration."""
    axes = {loop.axis.data for loop in chain}
    return [
        op
        for op in chain[-1].body.block.ops
        if isinstance(op, kernel.LocalOp)
        and op.buffer.first_use is not None
        and not memory.fits_stack(op)
        and axes.isdisjoint(memory.local_type(op).extent.free_symbols)
    ]


def _trip(op: Loop) -> Expr:
    return op.hi.data - op.lo.data


def _elements(op: Loop, axes: frozenset[str]) -> Expr:
    """Elements that an op visits: its trip count times those of its largest inner loop."""
    trip = _trip(op)
    if trip.free_symbols & axes:
        trip = const(16)  # varies from iteration to iteration
    axes = axes | {op.axis.data}
    inner = [_elements(each, axes) for each in op.body.block.ops if is_loop(each)]
    return trip * max(inner, key=_size, default=const(1))


def _size(expr: Expr) -> tuple[int, int]:
    monomial, coefficient = expr.terms[0] if expr.terms else ((), 0)
    return len(monomial), coefficient
