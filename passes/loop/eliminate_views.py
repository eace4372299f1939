"""`loop-eliminate-views`: index maps are composed into the loads that read through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, ViewOp, YieldOp
from ...dialects.sym import AxesAttr, Expr, MapAttr, Ranges, simplify
from ..common.functions import functions, symbol_ranges
from ..common.strided_views import is_strided_view
from ..remarks import remark
from ._accesses import loads_in, map_of, redirect


@dataclass(frozen=True)
class EliminateViews(ModulePass):
    """Compose views into loads; keep only views that are strided views of memory.

    level:         loop
    precondition:  none
    guarantee:     no load reads a `loop.view`. A view that is left reads no view, feeds something that is no nest
                   (an ATen call, `aten.copy_`, a return, the destination of a scatter) and is linear in the memory of
                   its source with the strides of its result type. A map that is not becomes a `loop.generate`.

        %t = loop.view %x[i1, i0] (i0 in 4, i1 in 3) : !aten.tensor<4x3xf32, strides = [1, 4]>
        %y = loop.generate (i0 in 4, i1 in 3) { %v = loop.load %t[i0, i1]  loop.yield %v } : ...
    becomes
        %y = loop.generate (i0 in 4, i1 in 3) { %v = loop.load %x[i1, i0]  loop.yield %v } : ...
    """

    name = "loop-eliminate-views"
    level: ClassVar[str] = "loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module."""
        for function, block in functions(op):
            _Composer(symbol_ranges(function)).run(block)


class _Composer:
    """One sweep over a function, then the views that are left."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.composed: dict[tuple[MapAttr, AxesAttr, MapAttr], tuple[Expr, ...]] = {}

    def run(self, block: Block) -> None:
        views: list[ViewOp] = []
        for op in block.ops:
            if type(op) is ViewOp:
                self.compose_view(op)
                views.append(op)
            elif op.regions:
                for load in loads_in(op):
                    self.compose_load(load)
        for view in reversed(views):
            if view.results[0].first_use is None:
                block.erase_op(view)
            elif not self.is_strided(view):
                copy_of(view, block)

    def compose_load(self, load: LoadOp) -> None:
        """`(x[m])[e]` is `x[m(e)]`."""
        source = load.operands[0]
        view = source.owner
        if type(view) is ViewOp:
            redirect(load, view.operands[0], self.through(view, map_of(load)))

    def compose_view(self, op: ViewOp) -> None:
        inner = op.operands[0].owner
        if type(inner) is not ViewOp:
            return
        ranges = Ranges.of_axes(_axes(op).data, self.ranges)
        exprs = self.through(inner, _map(op))
        op.operands[0] = inner.operands[0]
        # chains of reshapes would grow with their length otherwise
        op.properties["map"] = MapAttr.of(*(simplify(e, ranges) for e in exprs))

    def through(self, view: ViewOp, index_map: MapAttr) -> tuple[Expr, ...]:
        """Index into the source of `view` of its element at `index_map`."""
        axes, inner = _axes(view), _map(view)
        key = (inner, axes, index_map)
        found = self.composed.get(key)
        if found is None:
            substitution = dict(zip(axes.names, index_map.data, strict=True))
            found = self.composed[key] = tuple(e.subs(substitution) for e in inner.data)
        return found

    def is_strided(self, view: ViewOp) -> bool:
        source, result = _tensor(view.operands[0]), _tensor(view.results[0])
        return is_strided_view(source, _axes(view), _map(view), result, self.ranges)


def copy_of(view: ViewOp, block: Block) -> None:
    """Replace a view by a nest that copies its elements."""
    load = LoadOp.of(view.operands[0], _map(view), location=view.location)
    body = Region(Block((load, YieldOp.create(operands=load.results))))
    copy = GenerateOp.of(_axes(view), body, (view.results[0].type,), location=view.location)
    remark("missed", "loop-eliminate-views", view, "not a strided view of its source; copied", map=str(_map(view)))
    block.insert_op_before(copy, view)
    view.results[0].replace_all_uses_with(copy.results[0])
    block.erase_op(view)


def _axes(view: Operation) -> AxesAttr:
    return cast(AxesAttr, view.properties["axes"])


def _map(view: Operation) -> MapAttr:
    return cast(MapAttr, view.properties["map"])


def _tensor(value: SSAValue) -> TensorType:
    return cast(TensorType, value.type)
