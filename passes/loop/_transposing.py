"""The axes of a nest in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, ViewOp, YieldOp
from ...dialects.sym import AxesAttr, MapAttr, symbol
from ._accesses import access_of, map_of
from ._splice import Site, Splicer


def transposed(nest: GenerateOp, order: Sequence[int]) -> GenerateOp:
    """The nest with its axes in an order of their numbers, in its place; its elements lie in memory as before.

    order: the axis that each of the new ones is; what reads the one result has its indices in that order afterwards
    """
    block, (old,) = nest.parent, nest.results
    assert block is not None
    type_ = cast(TensorType, old.type)
    names, sizes = nest.axes.names, [nest.axes.sizes[k] for k in order]
    place = [symbol(names[order.index(k)]) for k in range(len(order))]
    load = LoadOp.of(old, MapAttr.of(*place))
    body = Block([load, YieldOp.create(operands=(load.results[0],))])
    kind = type_.with_(shape=tuple(sizes), strides=tuple(type_.strides[k] for k in order))
    new = GenerateOp.of(AxesAttr.of(*zip(names, sizes, strict=True)), Region(body), [kind], location=nest.location)
    new.results[0].name_hint = old.name_hint
    block.insert_op_after(new, nest)
    for use in [use for use in old.uses if use.operation is not load]:
        _read_elsewhere(use.operation, use.index, new.results[0], order, names)
    Splicer(nest, Site(body, access_of(load), map_of(load).data, [load]), frozenset(names), move=True).run()
    block.erase_op(nest)
    return new


def _read_elsewhere(reader: Operation, place: int, new: SSAValue, order: Sequence[int], names: Sequence[str]) -> None:
    """Let a reader have an element of the new result; what knows no indices has a view of it."""
    if isinstance(reader, LoadOp | ViewOp) and place == 0:
        old = cast(MapAttr, reader.properties["map"]).data
        reader.operands[place] = new
        reader.properties["map"] = MapAttr.of(*(old[k] for k in order))
        return
    source = reader.operands[place]
    type_ = cast(TensorType, source.type)
    axes = AxesAttr.of(*zip(names, type_.shape, strict=True))
    view = ViewOp.of(new, axes, MapAttr.of(*(symbol(names[k]) for k in order)), type_, reader.location)
    assert reader.parent is not None
    reader.parent.insert_op_before(view, reader)
    reader.operands[place] = view.results[0]
