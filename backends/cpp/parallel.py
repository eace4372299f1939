"""Loops over CPU threads."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.sym import Expr, const
from . import memory
from .context import Context
from .loops import LoopEmitter
from .statements import is_loop

#: A parallel region costs microseconds; one thread runs loops with fewer elements than this.
GRAIN = 16384


def emit_parallel(emitter: LoopEmitter, op: kernel.ForOp) -> None:
    """Write an outermost parallel loop, with the parallel loops nested right inside it."""
    context = emitter.context
    chain = _chain(op)
    work = _elements(op, frozenset())
    total = work.as_int()
    context.comment(op)
    if total is not None and total < GRAIN:
        return _nest(emitter, chain, "")
    clauses = f" collapse({len(chain)})" if len(chain) > 1 else ""
    if any(isinstance(inner, kernel.AssertOp) for inner in op.walk()):
        clauses += " reduction(|: failed)"
    context.in_parallel = True
    if total is None:
        clauses += f" if ({context.index(work).at(3)} >= {GRAIN})"
    hoisted = _heap_locals(chain)
    if hoisted:
        context.out.pragma(f"omp parallel{clauses.replace(f' collapse({len(chain)})', '')}")
        with context.out.block(""):
            for local in hoisted:
                memory.declare_local(context, local)
            collapse = f" collapse({len(chain)})" if len(chain) > 1 else ""
            _nest(emitter, chain, f"omp for nowait{collapse}")
    else:
        simd = " simd" if not any(is_loop(inner) for inner in chain[-1].body.block.ops) else ""
        _nest(emitter, chain, f"omp parallel for{simd}{clauses}")
    context.in_parallel = False


def _nest(emitter: LoopEmitter, chain: list[kernel.ForOp], pragma: str) -> None:
    from contextlib import ExitStack

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
        and not memory.on_stack(op)
        and axes.isdisjoint(op.buffer.type.extent.free_symbols)  # pyright: ignore[reportAttributeAccessIssue]
    ]


def _elements(op: Operation, axes: frozenset[str]) -> Expr:
    """Elements that an op visits: its trip count times those of its largest inner loop."""
    assert isinstance(op, kernel.ForOp | kernel.ReduceOp | kernel.ScanOp)
    trip = op.hi.data - op.lo.data
    if trip.free_symbols & axes:
        trip = const(16)
    axes = axes | {op.axis.data}
    inner = [_elements(each, axes) for each in op.body.block.ops if is_loop(each)]
    return trip * max(inner, key=_size, default=const(1))


def _size(expr: Expr) -> tuple[int, int]:
    monomial, coefficient = expr.terms[0] if expr.terms else ((), 0)
    return len(monomial), coefficient


_: type[Context] = Context
