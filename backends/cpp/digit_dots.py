"""Sums over numbers of 4 bits and of bytes, as functions of the prelude, which multiply them as pairs of bfloat16."""

from __future__ import annotations

from typing import cast

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...errors import UnsupportedError
from ...passes.kernel.byte_dots import ByteDot, byte_dots
from ...passes.kernel.digit_dots import DigitDot, digit_dots
from ..c_like.context import Context
from ..c_like.types import storage_ctype
from ..printing.code import Code


def emit_dots(context: Context, op: kernel.ReduceOp) -> None:
    """Write the sums of an intrinsic. UnsupportedError for loops that compute something else."""
    assert op.intrinsic is not None
    name = op.intrinsic.data
    digits, of_bytes = (digit_dots(op), None) if name == "dot_digits" else (None, byte_dots(op))
    calls = [_of_digits(context, dot) for dot in digits or ()] + [_of_bytes(context, dot) for dot in of_bytes or ()]
    if not calls:
        raise UnsupportedError(f"the loop over {op.axis.data} is no {name}; drop its `intrinsic`")
    context.need(name)
    context.comment(op)
    for result, call in zip(op.results, calls, strict=True):
        temporary = context.names.temporary()
        context.out.line(f"const float {temporary} = {call};")
        context.values[result] = Code(temporary)


def _of_bytes(context: Context, dot: ByteDot) -> str:
    axis = cast(kernel.ReduceOp, dot.byte.parent_op()).axis.data
    places = [
        f"&{context.buffers[load.buffer].name}[{context.index(load.map.data[0].subs({axis: ZERO}))}]"
        for load in (dot.x, dot.byte)
    ]
    return f"dot_bytes({', '.join(places)}, {dot.length})"


def _of_digits(context: Context, dot: DigitDot) -> str:
    start = dict.fromkeys(dot.axes, ZERO)
    arguments: list[str] = []
    for load, step in zip((dot.x, dot.byte, dot.scale), dot.steps, strict=True):
        arguments.append(f"&{context.buffers[load.buffer].name}[{context.index(load.map.data[0].subs(start))}]")
        arguments.append(str(context.index(step)))
    scale = dot.scale.buffer.type
    assert isinstance(scale, kernel.BufferType)
    kinds = f"{dot.lanes}, {dot.zero}, {dot.shared}, {storage_ctype(scale.element)}"
    return f"dot_digits<{kinds}>({', '.join(arguments)}, {dot.groups})"
