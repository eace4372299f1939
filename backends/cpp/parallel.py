"""Loops over CPU threads."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO, Expr, const
from ..c_like import memory
from ..c_like.context import Context
from ..c_like.emit import MAX_LINE
from ..c_like.literals import REPORT
from ..c_like.loops import serial_loop
from ..c_like.quotients import name_quotients
from ..c_like.statements import Loop, is_loop
from ..c_like.types import storage_ctype
from ..printing.code import PRODUCT, SUM, Code, binary
from .lanes import simd_pragma
from .loops import LoopEmitter

#: A parallel region costs microseconds: without a grain in the IR, one thread runs loops with fewer elements.
GRAIN = 16384


def emit_parallel(emitter: LoopEmitter, op: kernel.ForOp) -> None:
    """Write an outermost parallel loop, joined with the parallel loops that are alone inside each other."""
    context, chain = emitter.context, _chain(op)
    context.comment(op)
    condition = _worthwhile(context, chain)
    if condition == "false":
        with ExitStack() as stack:
            for loop in chain:
                stack.enter_context(serial_loop(context, loop))
            emitter.block(chain[-1].body.block)
        return
    context.need("parallel")
    asserts = any(isinstance(inner, kernel.AssertOp) for inner in op.walk())
    captures = "&, &all_failed = failed" if asserts else "&"
    context.in_parallel, outer_touched, context.touched = True, context.touched, set()
    outer_quotients, context.quotients = context.quotients, {}
    with context.out.apart(inner=1) as lines:
        if asserts:
            context.out.line("uint32_t failed = 0;")
        for local in _invariant_locals(chain):
            memory.declare_local(context, local)
        _thread(emitter, chain)
        if asserts:
            context.out.line("if (failed) __atomic_fetch_or(&all_failed, failed, __ATOMIC_RELAXED);")
    passed = _passed(context, op)
    context.in_parallel, context.touched = False, context.touched | outer_touched
    context.quotients = outer_quotients
    parameters = ["int64_t begin", "int64_t end", *(f"{ctype} {name}" for name, ctype in passed.items())]
    head = _broken(f"parallel_for({condition}, {_count(context, chain)}, [{captures}](", parameters, ") NOINLINE")
    with context.out.block(head, "".join(("}", *(f", {name}" for name in passed), ");"))):
        context.out.extend(lines)


def _broken(head: str, parameters: list[str], tail: str) -> str:
    """The head of a function in lines that are not too long, broken between parameters."""
    lines = [head]
    for parameter in (*(f"{each}, " for each in parameters[:-1]), f"{parameters[-1]}{tail}"):
        if len(lines[-1]) + len(parameter) > MAX_LINE:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * 6)
        lines[-1] += parameter
    return "\n".join(lines)


def _passed(context: Context, op: kernel.ForOp) -> dict[str, str]:
    """What the function of the loop takes by value of the kernel's buffers and symbols, with the C types.

    What a lambda captures lies in memory: where a store may change it, as far as C++ knows, a pointer is read anew for
    each element, under a mask even where it is not, and loops are vectorised badly or not at all. Nor does a captured
    pointer say that nothing else leads to its buffer.
    """
    if context.checked:
        return {}
    passed: dict[str, str] = {}
    used = _buffers(op)
    for value, buffer in context.buffers.items():
        if value in used and not op.is_ancestor(value.owner):
            ctype = f"{storage_ctype(buffer.element)}* {context.language.restrict}"
            passed[buffer.name] = context.parameters.get(buffer.name, ctype)
    symbols = {context.symbols[name].text for name in context.touched if name in context.symbols}
    return passed | {name: ctype for name, ctype in context.parameters.items() if name in symbols}


def _buffers(op: kernel.ForOp) -> set[SSAValue]:
    """The buffers that anything in a loop uses."""
    return {value for inner in op.walk() for value in inner.operands if isinstance(value.type, kernel.BufferType)}


def _count(context: Context, chain: list[kernel.ForOp]) -> Code:
    if context.checked:
        context.need("checked_loops")
        trips = ", ".join(str(context.index(_trip(loop))) for loop in chain)
        return Code(f"loop_count({REPORT}, {{{trips}}})")
    return context.index(prod((_trip(loop) for loop in chain), start=const(1)))


def _thread(emitter: LoopEmitter, chain: list[kernel.ForOp]) -> None:
    """Write the loop of one thread, over its share `begin` to `end` of all iterations."""
    context, last = emitter.context, chain[-1]
    name_quotients(context, chain[0])
    body = list(last.body.block.ops)
    if len(chain) == 1 and not any(map(is_loop, body)):
        simd_pragma(context, body)
    with ExitStack() as stack:
        if len(chain) == 1 and last.lo.data is ZERO:
            name = context.names.fresh(last.axis.data)
            stack.enter_context(context.out.block(f"for (int64_t {name} = begin; {name} < end; ++{name})"))
            stack.enter_context(context.axis(last.axis.data, name, last.lo.data, last.hi.data))
        else:
            count = context.names.fresh("iteration")
            stack.enter_context(context.out.block(f"for (int64_t {count} = begin; {count} < end; ++{count})"))
            for loop in chain:
                name = context.names.fresh(loop.axis.data)
                place = _place(context, Code(count), chain, loop)
                context.out.line(f"const int64_t {name} = {place};")
                stack.enter_context(context.axis(loop.axis.data, name, loop.lo.data, loop.hi.data))
        emitter.block(last.body.block)


def _place(context: Context, count: Code, chain: list[kernel.ForOp], loop: kernel.ForOp) -> Code:
    """The value of one axis in the iteration with number `count`, counted in row-major order."""
    inner = prod((_trip(each) for each in chain[chain.index(loop) + 1 :]), start=const(1))
    place = count
    if inner is not ONE:
        place = binary("/", PRODUCT, place, context.index(inner))
    if loop is not chain[0]:
        place = binary("%", PRODUCT, place, context.index(_trip(loop)))
    return place if loop.lo.data is ZERO else binary("+", SUM, place, context.index(loop.lo.data))


def _worthwhile(context: Context, chain: list[kernel.ForOp]) -> str:
    """When to start threads, as C++: a condition, "true" or "false".

    The tile of a parallel loop is its grain: the fewest iterations worth a thread of their own.
    """
    grain = prod(loop.tile.value.data for loop in chain if loop.tile is not None)
    work, least = prod((_trip(loop) for loop in chain), start=const(1)), 2 * grain
    if all(loop.tile is None for loop in chain):
        work, least = _elements(chain[0], frozenset()), GRAIN
    total = work.as_int()
    if total is None:
        return f"{context.index(work).at(SUM)} >= {least}"
    return "true" if total >= least else "false"


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


def _invariant_locals(chain: list[kernel.ForOp]) -> list[kernel.LocalOp]:
    """Local buffers of the body on the heap, of a size that is the same in every iteration: one for each thread."""
    axes = {loop.axis.data for loop in chain}
    locals_ = (op for op in chain[-1].body.block.ops if isinstance(op, kernel.LocalOp))
    return [op for op in locals_ if memory.invariant_in(op, axes)]


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
