"""Loads, stores, local buffers and asserts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.aten.types import is_unsigned, scalar_type
from ...dialects.sym import Expr, symbol
from ...errors import UnsupportedError
from ..printing.code import UNARY, Code, call
from ..printing.monoids import STORE_MONOIDS
from .context import LANE, Buffer, Context
from .conversions import cast, from_storage, to_storage
from .literals import REPORT, conditional
from .monoids import combine
from .scalars import is_exact
from .types import half_name, is_float, item_bytes, storage_ctype

#: bits of the status word
MAX_ERRORS = 32


def element(context: Context, buffer: Buffer, index: Expr, dynamic: Sequence[SSAValue]) -> Code:
    """The place in memory that a linear index addresses."""
    if buffer.lanes > 1:
        index = index * buffer.lanes + symbol(LANE)
    place = context.index(index, tuple(dynamic)).text
    return Code(context.language.element(storage_ctype(buffer.element), buffer.name, place, context.checked))


def load(context: Context, op: kernel.LoadOp) -> Code:
    """The expression that reads an element; under a mask nothing else is read."""
    buffer = context.buffers[op.buffer]
    place = element(context, buffer, op.map.data[0], op.dynamic)
    value = from_storage(buffer.element, place, context.need)
    if op.mask is None or op.other is None:
        return value
    return conditional(context.value(op.mask), value, context.value(op.other))


def store(context: Context, op: kernel.StoreOp) -> None:
    """Write the statements of a store."""
    context.comment(op)
    if op.mask is None:
        _store(context, op)
        return
    with context.out.block(f"if ({context.value(op.mask)})"):
        _store(context, op)


def _store(context: Context, op: kernel.StoreOp) -> None:
    out, buffer = context.out, context.buffers[op.buffer]
    place = element(context, buffer, op.map.data[0], op.dynamic)
    if context.checked:  # the index is checked once
        declaration, kept = context.language.place(
            storage_ctype(buffer.element), context.names.fresh("place"), place.text
        )
        out.line(declaration)
        place = Code(kept, UNARY)
    atomic = op.atomic is not None and context.in_parallel
    if op.kind.data == "set":
        if atomic:
            out.pragma("omp atomic write")
        out.line(f"{place} = {_stored(context, op, buffer)};")
        return
    if _has_operator(op, buffer, atomic):
        if atomic:
            out.pragma("omp atomic")
        value = to_storage(buffer.element, context.value(op.value), context.need)
        out.line(f"{place} {'+' if op.kind.data == 'add' else '*'}= {value};")
    elif atomic:
        context.need("atomic")
        ctype = storage_ctype(buffer.element)
        updated = _combined(context, op, buffer, Code("old"))
        out.line(f"atomic_update(&{place}, [&]({ctype} old) {{ return {ctype}({updated}); }});")
    else:
        name = context.names.fresh("place")
        declaration, kept = context.language.place(storage_ctype(buffer.element), name, place.text)
        out.line(declaration)
        out.line(f"{kept} = {_combined(context, op, buffer, Code(kept, UNARY))};")


def _stored(context: Context, op: kernel.StoreOp, buffer: Buffer) -> Code:
    """What memory holds for a value that is set; one of bfloat16 that was read or chosen needs no rounding."""
    value = context.value(op.value)
    if half_name(op.value.type) == "bf16" and half_name(buffer.element) == "bf16" and is_exact(op.value.owner):
        context.need("cut_bf16")
        return call("cut_bf16", value)
    return to_storage(buffer.element, value, context.need)


def _has_operator(op: kernel.StoreOp, buffer: Buffer, atomic: bool) -> bool:
    """Whether `+=` or `*=` does what the store says; on integers only an atomic one wraps."""
    if op.kind.data not in ("add", "mul") or half_name(buffer.element) is not None:
        return False
    return is_float(buffer.element) or (atomic and item_bytes(buffer.element) >= 4)


def _combined(context: Context, op: kernel.StoreOp, buffer: Buffer, old: Code) -> Code:
    """What memory holds after combining `old`, read from there, with the stored value."""
    kind, value, unsigned = STORE_MONOIDS[op.kind.data], context.value(op.value), is_unsigned(buffer.element)
    if unsigned:
        value = cast(storage_ctype(buffer.element), value)
    else:
        old = from_storage(buffer.element, old, context.need)
    result = combine(kind, old, value, scalar_type(buffer.element), context.need, unsigned)
    return result if unsigned else to_storage(buffer.element, result, context.need)


def check(context: Context, op: kernel.AssertOp) -> None:
    """Write an assert: one bit of `failed` for each error, so that threads and lanes combine by `or`."""
    code = op.code.data.as_int()
    if code is None or not 1 <= code <= MAX_ERRORS:
        raise UnsupportedError(f"error code {op.code.data} of a kernel is not in 1 .. {MAX_ERRORS}")
    context.comment(op)
    context.out.line(f"failed |= {context.value(op.condition).at(3)} ? 0u : {1 << (code - 1)}u;")


def local_type(op: kernel.LocalOp) -> kernel.BufferType:
    """Type of a local buffer."""
    assert isinstance(op.buffer.type, kernel.BufferType)
    return op.buffer.type


def invariant_in(op: kernel.LocalOp, axes: Iterable[str]) -> bool:
    """Whether a local buffer on the heap has one size for all iterations, so that a thread needs it once."""
    return op.heap is not None and local_type(op).extent.free_symbols.isdisjoint(axes)


def declare_local(context: Context, op: kernel.LocalOp, lanes: int = 1) -> None:
    """Write the declaration of a local buffer at this place; none for one that nothing uses."""
    if op.buffer.first_use is None:
        return
    local = local_type(op)
    name, language = context.names.fresh(op.buffer.name_hint or "local"), context.language
    ctype = storage_ctype(local.element)
    extent = context.index(local.extent * lanes)
    if op.heap is None:
        _on_stack(context, op, name, extent)
    elif context.checked:
        context.need("checked_scratch")
        for line in language.checked_scratch(ctype, name, extent.text, REPORT):
            context.out.line(line)
    else:
        context.need("scratch")
        for line in language.scratch(ctype, name, extent.text):
            context.out.line(line)
    context.buffers[op.buffer] = Buffer(name, local.element, lanes)


def _on_stack(context: Context, op: kernel.LocalOp, name: str, extent: Code) -> None:
    local, language = local_type(op), context.language
    size, ctype = local.extent.as_int(), storage_ctype(local.element)
    if size is None:
        raise UnsupportedError(f"the size of the local buffer {name} is not known: run kernel-place-locals")
    memory = f"{name}_memory" if context.checked else name
    context.out.line(f"{language.aligned} {ctype} {memory}[{extent if size else 1}];")
    if context.checked:
        context.out.line(language.checked_buffer(ctype, name, f"{memory}, {extent}, {REPORT}, -1"))
