"""Matrix products and attention of a program: which library kernel computes each, why, and how long it may take."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block

from ...dialects import host
from ...dialects.aten import AtenOp, TensorType
from ...dialects.aten.types import ITEM_SIZES, torch_name
from ...dialects.raw import ops_of
from ...dialects.sym import ONE, Expr
from ...machines import GpuTarget, Target
from ..common.implementations import ALIGNMENT, IMPLEMENTATION, ONEDNN, SCRATCH, TURNS, alignment, turns
from ..common.library_call import LibraryCall
from ..remarks import format_location
from .functions import functions
from .product_times import attention_nanoseconds, product_nanoseconds
from .sizes import Sizes

#: positions of the two matrices among the operands
_PRODUCTS = {"aten.mm": 0, "aten.bmm": 0, "aten.addmm": 1, "aten._addmm_activation": 1, "aten.baddbmm": 1}
#: part of an op's name -> the library's kernel
_ATTENTION = {"flash": "flash attention", "cudnn": "cuDNN's attention", "efficient": "memory-efficient attention"}
#: products of a gradient for each one of the attention: five for two
_GRADIENT = 2.5
_BY_OPS = "none: scores are computed op by op, for want of a fused kernel for its type, mask or sizes"


def library_calls(module: ModuleOp, target: Target) -> Iterator[LibraryCall]:
    """Those of the host functions of a module, in order."""
    for function in module.ops:
        if not isinstance(function, host.FuncOp):
            continue
        sizes = Sizes.of_function(function)
        for op in ops_of(function.body.block):
            if not isinstance(op, AtenOp) or not op.results or not isinstance(op.results[0].type, TensorType):
                continue
            if op.target in _PRODUCTS:
                yield _product(op, target, sizes)
            elif "scaled_dot_product" in op.target:
                yield _attention(op, target, sizes)


def decomposed_attention(module: ModuleOp) -> Iterator[LibraryCall]:
    """Attention that torch wrote out before the aten level: its softmax tells."""
    for _, block in functions(module):
        yield from _decomposed(block)


def _decomposed(block: Block) -> Iterator[LibraryCall]:
    for op in ops_of(block):
        if isinstance(op, AtenOp) and op.packet == "_safe_softmax":
            type_ = op.results[0].type
            assert isinstance(type_, TensorType)
            shape = "x".join(map(str, type_.shape))
            call = f"attention of {shape} scores, {torch_name(type_.element)}"
            yield LibraryCall(call, _BY_OPS, None, format_location(op.location))


def _product(op: AtenOp, target: Target, sizes: Sizes) -> LibraryCall:
    first = _PRODUCTS[op.target]
    left, right, result = (value.type for value in (*op.operands[first : first + 2], op.results[0]))
    assert isinstance(left, TensorType) and isinstance(right, TensorType) and isinstance(result, TensorType)
    size = ITEM_SIZES.get(torch_name(result.element), 1)
    expressions = (left.shape[-2], left.shape[-1], right.shape[-1])
    rows, depth, columns = (sizes.of(each) for each in expressions)
    batch = sizes.of(left.shape[0]) if len(left.shape) == 3 else 1
    prefix = f"{batch} of " if len(left.shape) == 3 else ""
    call = f"{op.packet} {prefix}{'x'.join(map(str, expressions))} {torch_name(result.element)}"
    bytes_ = min(alignment(_step(type_), size) for type_ in (left, right, result))
    library = op.attributes.get(IMPLEMENTATION)
    name = library.data if isinstance(library, StringAttr) else ""
    parts = turns(columns, size) if name == TURNS else 1
    if name == TURNS:
        kernel, bytes_ = f"the BLAS in {parts} turns: rows of the result begin at unaligned addresses", ALIGNMENT
    elif name == SCRATCH:
        kernel, bytes_ = "the BLAS into scratch memory: rows of the result begin at unaligned addresses", ALIGNMENT
    elif name == ONEDNN:
        kernel = "oneDNN, which is faster here"
    elif isinstance(target, GpuTarget) and bytes_ < ALIGNMENT:
        kernel = f"the BLAS, but rows begin at multiples of {bytes_} bytes: not its fast kernels"
    else:
        kernel = "the BLAS"
    time = None
    if isinstance(target, GpuTarget):
        part = product_nanoseconds(target, size * 8, bytes_, (batch, max(rows // parts, 1), depth, columns))
        time = None if part is None else part * parts / 1e3
    return LibraryCall(call, kernel, time, format_location(op.location))


def _step(type_: TensorType) -> Expr:
    """Elements between two rows, or two columns where those are side by side."""
    rows, columns = type_.strides[-2:]
    return columns if rows is ONE and columns is not ONE else rows


def _attention(op: AtenOp, target: Target, sizes: Sizes) -> LibraryCall:
    is_gradient = op.packet.endswith("_backward")  # of which the first operand is the result's gradient
    query, key = (op.operands[position + is_gradient].type for position in (0, 1))
    assert isinstance(query, TensorType) and isinstance(key, TensorType)
    name = next((text for part, text in _ATTENTION.items() if part in op.packet), op.packet)
    expressions = (query.shape[-2], key.shape[-2], query.shape[-1])
    heads = 1
    for each in query.shape[:-2]:
        heads *= sizes.of(each)
    call = f"attention {heads} of {'x'.join(map(str, expressions))} {torch_name(query.element)}"
    is_causal = "is_causal" in op.schema.by_name and op.arg("is_causal") is True
    why = "causal" if is_causal else "with a mask" if _has_mask(op) else "everything is visible"
    time = None
    if isinstance(target, GpuTarget):
        queries, keys, width = (sizes.of(each) for each in expressions)
        bits = 8 * ITEM_SIZES.get(torch_name(query.element), 1)
        time = attention_nanoseconds(target, bits, (heads, queries, keys, width))
        if time is not None:
            time *= _GRADIENT / 1e3 if is_gradient else 1e-3
    kernel = f"{name}, {why}{', its gradient' if is_gradient else ''}"
    return LibraryCall(call, kernel, time, format_location(op.location))


def _has_mask(op: AtenOp) -> bool:
    return any(op.arg(name) is not None for name in ("attn_mask", "attn_bias") if name in op.schema.by_name)
