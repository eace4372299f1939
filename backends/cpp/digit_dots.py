"""Sums over numbers of 4 bits, as `dot_digits` of the prelude, which multiplies them as pairs of bfloat16."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...errors import UnsupportedError
from ...passes.kernel.digit_dots import DigitDot, digit_dots
from ..c_like.context import Context
from ..c_like.types import storage_ctype
from ..printing.code import Code


def emit_digit_dots(context: Context, op: kernel.ReduceOp) -> None:
    """Write the sums. UnsupportedError for loops that compute something else."""
    dots = digit_dots(op)
    if dots is None:
        raise UnsupportedError(f"the loop over {op.axis.data} sums no numbers of 4 bits; drop its `intrinsic`")
    context.need("dot_digits")
    context.comment(op)
    for result, dot in zip(op.results, dots, strict=True):
        name = context.names.temporary()
        context.out.line(f"const float {name} = {_call(context, dot)};")
        context.values[result] = Code(name)


def _call(context: Context, dot: DigitDot) -> str:
    start = dict.fromkeys(dot.axes, ZERO)
    arguments: list[str] = []
    for load, step in zip((dot.x, dot.byte, dot.scale), dot.steps, strict=True):
        arguments.append(f"&{context.buffers[load.buffer].name}[{context.index(load.map.data[0].subs(start))}]")
        arguments.append(str(context.index(step)))
    scale = dot.scale.buffer.type
    assert isinstance(scale, kernel.BufferType)
    kinds = f"{dot.lanes}, {dot.zero}, {dot.shared}, {storage_ctype(scale.element)}"
    return f"dot_digits<{kinds}>({', '.join(arguments)}, {dot.groups})"
