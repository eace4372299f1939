"""The layouts of images and weights, for `loop-channels-last`: types, and values in other layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, ScatterOp, ViewOp, YieldOp, yielded
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, MapAttr, symbol
from ..analysis.tensor_bytes import is_dense
from ._accesses import map_of
from .assign_layouts import unit_dimension

#: dimensions of a batch of images with channels
IMAGE_RANKS = (3, 4, 5)

NESTS = (GenerateOp, ScatterOp)
"""Ops that write in any layout."""


def channels_last(type_: TensorType) -> TensorType:
    """The type of images of one dimension or more with dimension 1 along memory."""
    (n, c, *points), strides, step = type_.shape, [], type_.shape[1]
    for size in reversed(points):
        strides.append(step)
        step *= size
    return TensorType.get((n, c, *points), type_.element, (step, ONE, *reversed(strides)), type_.device)


def has_layouts(weight: TensorType) -> bool:
    """Whether a weight lies in memory in another way with channels last: it has several, and several points."""
    return weight.shape[1] is not ONE and any(size is not ONE for size in weight.shape[2:])


def copied_value(value: SSAValue) -> SSAValue | None:
    """The tensor that a nest copies element by element; None for a value that is something else."""
    nest = value.owner
    if type(nest) is not GenerateOp or len(nest.results) != 1:
        return None
    load = yielded(nest.regions[0])[0].owner
    if type(load) is not LoadOp or len(load.operands) != 1:
        return None
    source = load.operands[0]
    axes = tuple(map(symbol, cast(AxesAttr, nest.properties["axes"]).names))
    same = cast(TensorType, source.type).shape == cast(TensorType, value.type).shape
    return source if same and _without_points(map_of(load).data, source) == _without_points(axes, source) else None


def _without_points(index: Sequence[Expr], source: SSAValue) -> list[Expr]:
    """The part of an index along dimensions that have more than one element."""
    return [e for e, size in zip(index, cast(TensorType, source.type).shape, strict=True) if size is not ONE]


def is_channels_last(value: SSAValue) -> bool:
    type_ = cast(TensorType, value.type)
    return len(type_.shape) in IMAGE_RANKS and unit_dimension(type_) == 1 and is_dense(type_)


def is_made_by_nest(value: SSAValue) -> bool:
    """Whether nests alone decide how a value lies in memory; a scatter does where nothing else reads what it fills."""
    owner = value.owner
    if type(owner) is ScatterOp:
        return owner.dest.has_one_use() and owner.dest.type == value.type and is_made_by_nest(owner.dest)
    return type(owner) is GenerateOp


def retype(value: SSAValue) -> SSAValue:
    if type(value.owner) is ScatterOp:
        retype(value.owner.dest)
    return Rewriter.replace_value_with_new_type(value, channels_last(cast(TensorType, value.type)))


def copy_of(source: SSAValue, type_: TensorType, op: Operation) -> GenerateOp:
    """A nest that copies a value into another layout."""
    axes = _axes_of(type_)
    load = LoadOp.of(source, MapAttr.of(*map(symbol, axes.names)), location=op.location)
    body = Region(Block([load, YieldOp.create(operands=[load.results[0]])]))
    return GenerateOp.of(axes, body, [type_], location=op.location)


def view_of(source: SSAValue, type_: TensorType, op: Operation) -> ViewOp:
    """A value with other strides along dimensions of one element, which eager and its users can see."""
    axes = _axes_of(type_)
    index = [ZERO if size is ONE else symbol(name) for name, size in axes.data]
    return ViewOp.of(source, axes, MapAttr.of(*index), type_, op.location)


def _axes_of(type_: TensorType) -> AxesAttr:
    return AxesAttr.of(*((f"i{k}", size) for k, size in enumerate(type_.shape)))
