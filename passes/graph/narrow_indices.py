"""`graph-narrow-indices`: places that backward reads are kept in as few bits as hold them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import IntegerType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, SSAValue, Use

from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import Expr, Ranges, bounds
from ..analysis.functions import symbol_ranges
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._joint import CHECKPOINT, forward_results, late_values, word
from ._recompute import RecomputeClass, recompute_class

#: ops whose last result is places along the dimension `dim`; without one `max`, `median` and `min` have no places
_ALONG_DIM = frozenset({
    "argmax", "argmin", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "sort", "topk",
})  # fmt: skip
#: ops whose last result is places in the last so many dimensions
_WINDOWS = {
    "adaptive_max_pool2d": 2, "adaptive_max_pool3d": 3, "max_pool2d_with_indices": 2, "max_pool3d_with_indices": 3,
}  # fmt: skip
_WIDTHS = (16, 32)


class NarrowIndices(AtenPass):
    """Let backward read places in a tensor from 16 or 32 bits, where its size says that they fit.

    level:         aten, functions with `forward_results` (see `passes/graph/_joint.py`)
    precondition:  stands before `graph-partition`
    guarantee:     the same values: a place lies between 0 and the size, and a number below 2^15 (2^31) passes through
                   16 (32) bits unchanged. Ops of the backward graph read `aten._to_copy` to 64 bits of
                   `aten._to_copy` to fewer bits of a place that the forward graph computes, and the partition may save
                   what lies between. Left alone is what the forward graph returns, which is in memory as it is, and
                   what a checkpoint decides on.

    Of a pool with windows of two by two, places of 64 bits take as much memory as 16-bit elements of what it reads.

        %y, %i = aten.max_pool2d_with_indices(%x, ...) : !aten.tensor<1x8x4x4xbf16>, !aten.tensor<1x8x4x4xi64>
        %g = aten.max_pool2d_with_indices_backward(%t, %x, %i, ...) : !aten.tensor<1x8x8x8xbf16>
    becomes
        %y, %i = aten.max_pool2d_with_indices(%x, ...) : !aten.tensor<1x8x4x4xbf16>, !aten.tensor<1x8x4x4xi64>
        %n = aten._to_copy(%i, dtype = torch.int16) : !aten.tensor<1x8x4x4xi16>
        %w = aten._to_copy(%n, dtype = torch.int64) : !aten.tensor<1x8x4x4xi64>
        %g = aten.max_pool2d_with_indices_backward(%t, %x, %w, ...) : !aten.tensor<1x8x8x8xbf16>
    """

    name = "graph-narrow-indices"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every joint function of the module."""
        count = forward_results(function)
        if count is not None:
            _run(function, block, count)


def _run(function: FuncOp, block: Block, count: int) -> None:
    candidates = {op: places for op in block.ops if isinstance(op, AtenOp) and (places := _places_of(op)) is not None}
    if not candidates:
        return
    assert isinstance(block.last_op, ReturnOp)
    late, ranges = late_values(function, block), symbol_ranges(function)
    returned = set(block.last_op.operands[:count])
    for op, result in candidates.items():
        if result in late:
            continue
        reason = _objection(op, result, late, returned)
        width = None if reason else _width(op, ranges)
        if width is None:
            remark("missed", NarrowIndices.name, op, reason or "its places need 64 bits")
        elif counter(NarrowIndices.name):
            remark("passed", NarrowIndices.name, op, "backward reads places from fewer bits", bits=width)
            _narrow(op, result, width)


def _places_of(op: AtenOp) -> OpResult | None:
    """The result of 64 bits that holds places."""
    if op.packet not in _ALONG_DIM and op.packet not in _WINDOWS:
        return None
    if len(op.results) != (1 if op.packet in ("argmax", "argmin") else 2):
        return None
    type_ = op.results[-1].type
    return op.results[-1] if isinstance(type_, TensorType) and type_.element == i64 else None


def _late_uses(value: SSAValue, late: set[SSAValue]) -> Iterator[Use]:
    """Uses by ops of the backward graph, and by views that these alone read."""
    for use in value.uses:
        op = use.operation
        if op.results and (all(each in late for each in op.results) or _is_view_for(op, late)):
            yield use


def _is_view_for(op: Operation, late: set[SSAValue]) -> bool:
    if recompute_class(op) is not RecomputeClass.FREE:
        return False
    return all(use in set(_late_uses(result, late)) for result in op.results for use in result.uses)


def _objection(op: AtenOp, result: SSAValue, late: set[SSAValue], returned: set[SSAValue]) -> str | None:
    if result in returned:
        return "the forward graph returns its places: they are in memory"
    uses = set(_late_uses(result, late))
    if not uses or any(use not in uses for use in result.uses):
        return "not backward alone reads its places"
    return "a checkpoint decides what is saved" if word(op, CHECKPOINT) else None


def _width(op: AtenOp, ranges: Ranges) -> int | None:
    """The bits that hold every place."""
    most = _places(op, ranges)
    return None if most is None else next((width for width in _WIDTHS if most <= 1 << (width - 1)), None)


def _places(op: AtenOp, ranges: Ranges) -> int | None:
    """How many places there are at most, if that is known."""
    source = op.operands[0].type
    assert isinstance(source, TensorType)
    shape: tuple[Expr, ...] = tuple(source.shape)
    if op.packet in _WINDOWS:
        shape = shape[-_WINDOWS[op.packet] :]
    elif "dim" in op.schema.by_name and (dim := op.arg("dim")) is not None:
        shape = shape[dim : dim + 1 or None]
    sizes = [bounds(size, ranges)[1] for size in shape]
    return None if None in sizes else prod(size for size in sizes if size is not None)


def _narrow(op: Operation, result: OpResult, width: int) -> None:
    """The op is made anew, for what reads other values than before may only read those of new ops instead."""
    wide = result.type
    assert isinstance(wide, TensorType) and op.parent is not None
    new = op.clone()
    narrow = wide.with_(element=IntegerType(width))
    places = {"self": new.results[result.index], "dtype": narrow.element}
    down = AtenOp.of("aten._to_copy", places, (narrow,), op.location)
    up = AtenOp.of("aten._to_copy", {"self": down.results[0], "dtype": i64}, (wide,), op.location)
    down.results[0].name_hint, up.results[0].name_hint = "narrow_places", "places"
    op.parent.insert_ops_before([new, down, up], op)
    for old, made in zip(op.results, new.results, strict=True):
        made.name_hint = old.name_hint
        old.replace_all_uses_with(up.results[0] if old is result else made)
    op.parent.erase_op(op)
