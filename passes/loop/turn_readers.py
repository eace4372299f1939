"""`loop-turn-readers`: what reads a scan backwards computes its elements in the order of the scan."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, OpResult, Region

from ...dialects.aten.types import TensorType
from ...dialects.loop import EmptyOp, GenerateOp, LoadOp, ScanOp, ScatterOp
from ...dialects.raw import ops_of
from ...dialects.sym import Expr, MapAttr, symbol
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._bodies import substitute_axes


class TurnReaders(LoopPass):
    """Let a nest that reads a scan's result backwards write backwards instead (loop reversal).

    level:         loop
    precondition:  `loop-inline` and `loop-simplify-indices` have run; no `loop.fusion` yet
    guarantee:     a generate of one result that reads the result of a scan backwards along some axes, and nothing of it
                   at other places, is a unique scatter whose axes run as those of the scan do, into places that run
                   backwards. `loop-fuse` can then join it with the scan. The gradient of a cumulative sum is such a
                   nest: the scan of the flipped gradients, flipped.

        %s = loop.scan sum (i0 in 8, i1 in 64) along i1 { ... }
        %r = loop.generate (i0 in 8, i1 in 64) { %v = loop.load %s[i0, -i1 + 63] ... loop.yield %w } : T
    becomes
        %s = loop.scan sum (i0 in 8, i1 in 64) along i1 { ... }
        %d = loop.empty : T
        %r = loop.scatter set (i0 in 8, i1 in 64) into %d[i0, -i1 + 63] unique {
          %v = loop.load %s[i0, i1] ... loop.yield %w } : T
    """

    name = "loop-turn-readers"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Turn every nest that is worth it."""
        for nest in [op for op in block.ops if type(op) is GenerateOp]:
            turned = turned_axes(nest)
            if turned and counter(self.name):
                remark("passed", self.name, nest, "runs as the scan that it reads", axes=", ".join(turned))
                turn(nest, turned)


def turned_axes(nest: GenerateOp) -> dict[str, Expr]:
    """The axes along which a nest reads a scan backwards, with the places that it reads; none where it may not turn."""
    if len(nest.results) != 1 or any(op.regions for op in ops_of(nest.body.block)):
        return {}
    loads = [op for op in ops_of(nest.body.block) if type(op) is LoadOp]
    scanned = [op for op in loads if isinstance(op.source, OpResult) and type(op.source.owner) is ScanOp]
    found: dict[str, Expr] = {}
    for load in scanned:
        if load.dynamic or len(load.map.data) != len(nest.axes.data):
            return {}
        for (name, size), index in zip(nest.axes.data, load.map.data, strict=True):
            backwards = size - 1 - symbol(name)
            if index is backwards:
                found[name] = backwards
            elif index is not symbol(name):
                return {}
    everywhere = all(place in load.map.data for load in scanned for place in found.values())
    return found if everywhere else {}


def turn(nest: GenerateOp, turned: dict[str, Expr]) -> None:
    """Make a nest a scatter with axes that run the other way."""
    block, result = nest.parent, nest.results[0]
    assert block is not None and isinstance(result.type, TensorType)
    body = nest.body.block
    nest.body.detach_block(body)
    substitute_axes(body, turned)
    places = MapAttr.of(*(turned.get(name, symbol(name)) for name in nest.axes.names))
    empty = EmptyOp.of(result.type, location=nest.location)
    scatter = ScatterOp.of(empty.out, nest.axes, places, Region(body), "set", ["unique"], location=nest.location)
    scatter.out.name_hint = result.name_hint
    block.insert_ops_before([empty, scatter], nest)
    result.replace_all_uses_with(scatter.out)
    block.erase_op(nest)
