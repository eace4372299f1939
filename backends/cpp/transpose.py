"""Copies that swap two axes, as `transpose_copy` of the prelude, which turns tiles in registers."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects import kernel
from ...dialects.sym import Expr
from ...passes.kernel.cost import is_unit
from ...passes.kernel.read_back import is_plain
from .context import Context
from .types import item_bytes, storage_ctype


@dataclass(frozen=True)
class TransposedCopy:
    """`store.buffer[... + row + out_stride*column] = load.buffer[... + in_stride*row + column]` for two loops."""

    rows: kernel.ForOp
    columns: kernel.ForOp
    load: kernel.LoadOp
    store: kernel.StoreOp
    in_stride: Expr
    out_stride: Expr


def transposed_copy(op: kernel.ForOp) -> TransposedCopy | None:
    """The copy that a loop and the one loop inside do, when they do nothing else."""
    inner = _only(op)
    if inner is None:
        return None
    load, store, *rest = inner.body.block.ops
    if not isinstance(load, kernel.LoadOp) or not isinstance(store, kernel.StoreOp) or len(rest) != 1:
        return None
    if (
        store.value is not load.value
        or load.mask is not None
        or load.dynamic
        or not is_plain(store)
        or store.atomic is not None
    ):
        return None
    row, column = op.axis.data, inner.axis.data
    if row in inner.lo.data.free_symbols | inner.hi.data.free_symbols:
        return None
    read, written = load.map.data[0], store.map.data[0]
    in_stride, out_stride = read.coefficient(row), written.coefficient(column)
    if not is_unit(read.coefficient(column)) or not is_unit(written.coefficient(row)):
        return None
    if in_stride is None or out_stride is None or is_unit(in_stride) or is_unit(out_stride):
        return None
    if not {row, column}.isdisjoint(in_stride.free_symbols | out_stride.free_symbols):
        return None
    return TransposedCopy(op, inner, load, store, in_stride, out_stride)


def _only(op: kernel.ForOp) -> kernel.ForOp | None:
    """The loop inside of a loop, when that holds nothing else and itself just two ops."""
    ops = list(op.body.block.ops)
    inner = ops[0]
    if len(ops) != 2 or not isinstance(inner, kernel.ForOp) or inner.mapping.data in ("parallel", "grid"):
        return None
    return inner if len(list(inner.body.block.ops)) == 3 else None


def emit_transposed(context: Context, copy: TransposedCopy) -> bool:
    """Write a copy; False where the buffers hold elements of different types, lie interleaved, or are checked."""
    if context.checked:
        return False
    source, target = context.buffers[copy.load.buffer], context.buffers[copy.store.buffer]
    if source.element != target.element or source.lanes > 1 or target.lanes > 1 or source.name == target.name:
        return False
    if item_bytes(source.element) not in (1, 2, 4, 8):
        return False
    context.need("transpose")
    rows, columns = copy.rows, copy.columns
    start = {rows.axis.data: rows.lo.data, columns.axis.data: columns.lo.data}
    read, written = (context.index(op.map.data[0].subs(start)) for op in (copy.load, copy.store))
    arguments = [
        f"&{source.name}[{read}]",
        str(context.index(copy.in_stride)),
        f"&{target.name}[{written}]",
        str(context.index(copy.out_stride)),
        str(context.index(rows.hi.data - rows.lo.data)),
        str(context.index(columns.hi.data - columns.lo.data)),
    ]
    context.comment(copy.load)
    context.out.line(f"transpose_copy<{storage_ctype(source.element)}>({', '.join(arguments)});")
    return True
