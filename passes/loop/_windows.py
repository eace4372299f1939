"""Convolutions as nests: each point sums the products of a window of the input with the weight.

Two forms, for `s`, `p` and `d` the stride, padding and dilation of a dimension and `g` groups of channels:

    forward     y[n, o, i..] = sum over c, k.. of x[n, o // (O/g) * (I/g) + c, i*s - p + k*d ..] * w[o, c, k..]
    transposed  y[n, i, j..] = sum over c, k.. of x[n, r, j + p - k*d ..] * w[r, i % (I/g), k..]
                with r = i // (I/g) * (O/g) + c

The second, of stride 1, is also the gradient of the first one's input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, FloatAttr, LocationAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType, type_of
from ...dialects.loop import GenerateOp, IndexOp, LoadOp, ReduceOp, YieldOp
from ...dialects.scalar import NarrowOp, WidenOp
from ...dialects.sym import ZERO, AxesAttr, Expr, MapAttr, SymAttr, as_expr, symbol
from ...records import dataclass

_NARROW = (BFloat16Type, Float16Type)


@dataclass(frozen=True)
class Windows:
    """A convolution of `source`, [batch, channels, ..], with `weight`; `result` is the type of what it gives.

    A setting for each of the dimensions behind the channels; `bias` is a number for each channel of the result.
    `padding` of a transposed one is what the result loses on both sides.
    """

    source: SSAValue
    weight: SSAValue
    bias: SSAValue | None
    result: TensorType
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    groups: int
    location: LocationAttr

    @property
    def channels(self) -> int:
        """Channels of the source that a point of the result sums over."""
        shape = type_of(self.weight).shape
        taken = shape[0] // self.groups if self.transposed else shape[1]
        known = taken.as_int()
        assert known is not None
        return known

    @property
    def kernel(self) -> tuple[Expr, ...]:
        """Sizes of the window."""
        return type_of(self.weight).shape[2:]

    def positions(self, point: Sequence[Expr], inner: Sequence[Expr]) -> list[Expr]:
        """The place in the source that element `inner` of the window of a point reads."""
        parts = zip(point, inner, self.stride, self.padding, self.dilation, strict=True)
        if self.transposed:
            return [j + p - k * d for j, k, _, p, d in parts]
        return [i * s - p + k * d for i, k, s, p, d in parts]


def nest_of_windows(windows: Windows) -> GenerateOp:
    """The nest that computes a convolution; not inserted yet. Numbers of 16 bits are summed in float32."""
    type_ = windows.result
    names = [f"i{position}" for position in range(len(type_.shape))]
    sums, total = _sum(windows, [symbol(name) for name in names])
    body = Block([sums])
    if windows.bias is not None:
        addend = LoadOp.of(windows.bias, MapAttr.of(symbol(names[1])))
        body.add_op(addend)
        added = arith.AddfOp(total, _widened(body, addend.value))
        body.add_op(added)
        total = added.result
    if isinstance(type_.element, _NARROW):
        narrow = NarrowOp.of(total, total.type, type_.element)
        body.add_op(narrow)
        total = narrow.results[0]
    body.add_op(YieldOp.create(operands=[total]))
    nest = GenerateOp.of(
        AxesAttr.of(*zip(names, type_.shape, strict=True)), Region(body), [type_], location=windows.location
    )
    for op in body.walk():
        op.location = windows.location
    return nest


def _sum(windows: Windows, point: Sequence[Expr]) -> tuple[ReduceOp, SSAValue]:
    channels, kernel = windows.channels, windows.kernel
    sizes = [*([as_expr(channels)] if channels > 1 else []), *kernel]
    names = [f"r{position}" for position in range(len(sizes))]
    inner = [symbol(name) for name in names]
    channel = inner[0] if channels > 1 else ZERO
    block = Block()
    source, weight = _operands(windows, point, channel, inner[len(sizes) - len(kernel) :], block)
    product = arith.MulfOp(_widened(block, source), _widened(block, weight))
    block.add_ops([product, YieldOp.create(operands=[product.result])])
    reduce = ReduceOp.of(AxesAttr.of(*zip(names, sizes, strict=True)), ["sum"], Region(block))
    return reduce, reduce.outs[0]


def _operands(
    windows: Windows, point: Sequence[Expr], channel: Expr, inner: Sequence[Expr], block: Block
) -> tuple[SSAValue, SSAValue]:
    """The two factors of an element of the window."""
    batch, own, *places = point
    shape = type_of(windows.weight).shape
    of_group = shape[1] if windows.transposed else shape[0] // windows.groups
    read = own // of_group * windows.channels + channel if windows.groups > 1 else channel
    positions = windows.positions(places, inner)
    mask = _inside(windows, positions, block)
    zero = arith.ConstantOp(FloatAttr(0.0, cast(AnyFloat, type_of(windows.source).element)))
    source = LoadOp.of(windows.source, MapAttr.of(batch, read, *positions), (), mask, zero.result)
    at = (read, own % of_group if windows.groups > 1 else own) if windows.transposed else (own, channel)
    weight = LoadOp.of(windows.weight, MapAttr.of(*at, *inner))
    block.add_ops([zero, source, weight])
    return source.value, weight.value


def _inside(windows: Windows, positions: Sequence[Expr], block: Block) -> SSAValue:
    """Whether a place lies in the source; what the ranges of the axes decide of it folds later."""
    tests = [
        _compare(block, position, bound, predicate)
        for position, size in zip(positions, type_of(windows.source).shape[2:], strict=True)
        for bound, predicate in ((ZERO, "sge"), (size, "slt"))
    ]
    mask = tests[0]
    for test in tests[1:]:
        both = arith.AndIOp(mask, test)
        block.add_op(both)
        mask = both.result
    return mask


def _compare(block: Block, position: Expr, bound: Expr, predicate: str) -> SSAValue:
    ops = [IndexOp.create(properties={"expr": SymAttr.of(e)}, result_types=(i64,)) for e in (position, bound)]
    compare = arith.CmpiOp(ops[0].value, ops[1].value, predicate)
    block.add_ops([*ops, compare])
    return compare.result


def _widened(block: Block, value: SSAValue) -> SSAValue:
    if not isinstance(value.type, _NARROW):
        return value
    wide: Operation = WidenOp.of(value, value.type, Float32Type())
    block.add_op(wide)
    return wide.results[0]
