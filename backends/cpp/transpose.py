"""Copies that swap two axes, as `transpose_copy` of the prelude, which turns tiles in registers."""

from __future__ import annotations

from ...dialects import kernel
from ...errors import UnsupportedError
from ...passes.kernel.tensorize import transposed_copy
from ..c_like.context import Context
from ..c_like.types import storage_ctype


def emit_transposed(context: Context, op: kernel.ForOp) -> None:
    """Write a copy. UnsupportedError for loops that do something else."""
    copy = transposed_copy(op)
    if copy is None:
        raise UnsupportedError(f"the loop over {op.axis.data} is no copy with two axes swapped; drop its `intrinsic`")
    source, target = context.buffers[copy.load.buffer], context.buffers[copy.store.buffer]
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
