"""`loop-eliminate-views`: index maps are composed into the loads that read through them."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, ViewOp, YieldOp
from ...dialects.sym import AxesAttr, MapAttr, Ranges, simplify
from ..analysis.functions import symbol_ranges
from ..analysis.memory import Mutations
from ..common.strided_views import is_strided_view
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in, map_of, redirect


class EliminateViews(LoopPass):
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
    optional: ClassVar[bool] = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        _Composer(symbol_ranges(function), Mutations(block)).run(block)


class _Mapped(NamedTuple):
    """Elements of a source at a map over some axes."""

    source: SSAValue
    axes: AxesAttr
    map: MapAttr


class _Composer:
    """One sweep over a function, then the views that are left.

    A view that is no strided view of its source stands for a copy: eager makes one there, and views of the copy share
    its memory, not that of the source. So a view's operand and map say what its memory is a view of, and `elements`
    where its elements come from; they differ behind a copy.
    """

    def __init__(self, ranges: Ranges, mutations: Mutations) -> None:
        self.ranges = ranges
        self.mutations = mutations
        self.elements: dict[SSAValue, _Mapped] = {}
        self.strided: dict[tuple[TensorType, AxesAttr, MapAttr, TensorType], bool] = {}
        self.copies: dict[SSAValue, _Mapped] = {}
        self.composed: dict[tuple[MapAttr, AxesAttr, MapAttr], MapAttr] = {}

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
        made: dict[SSAValue, SSAValue] = {}
        for view in views:
            result = view.results[0]
            if view.parent is not None and result in self.copies:
                elements = self.copies[result]
                made[result] = copy_of(
                    view, elements._replace(source=made.get(elements.source, elements.source)), block
                )

    def compose_load(self, load: LoadOp) -> None:
        """`(x[m])[e]` is `x[m(e)]`."""
        through = self.elements.get(load.operands[0])
        if through is not None and counter(EliminateViews.name):
            redirect(load, through.source, self.compose(through, map_of(load)).data)

    def compose_view(self, view: ViewOp) -> None:
        source, axes, index_map = view.operands[0], _axes(view), _map(view)
        through = self.elements.get(source)
        mapped = _Mapped(source, axes, index_map)
        if through is not None:
            mapped = _Mapped(through.source, axes, self.simplified(axes, self.compose(through, index_map)))
            if source not in self.copies and not self.behind_copy(source):
                view.operands[0] = mapped.source
                view.properties["map"] = mapped.map
            elif source not in self.copies:
                self.compose_memory(view, source)
        result = view.results[0]
        if not self.is_strided(_tensor(view.operands[0]), axes, _map(view), _tensor(result)):
            self.copies[result] = mapped
            if self.mutations.writes_to(mapped.source):
                return  # a load behind the write must see the copied elements
        self.elements[result] = mapped

    def is_strided(self, source: TensorType, axes: AxesAttr, index_map: MapAttr, result: TensorType) -> bool:
        """`is_strided_view`, asked once for the equal views of equal layers."""
        key = (source, axes, index_map, result)
        found = self.strided.get(key)
        if found is None:
            found = self.strided[key] = is_strided_view(source, axes, index_map, result, self.ranges)
        return found

    def behind_copy(self, source: SSAValue) -> bool:
        """Whether a view that is no copy is a view of one."""
        return cast(Operation, source.owner).operands[0] in self.copies

    def compose_memory(self, view: ViewOp, source: SSAValue) -> None:
        """Make a view of a view of a copy a view of the copy."""
        inner = cast(ViewOp, source.owner)
        through = _Mapped(inner.operands[0], _axes(inner), _map(inner))
        view.properties["map"] = self.simplified(_axes(view), self.compose(through, _map(view)))
        view.operands[0] = through.source

    def compose(self, through: _Mapped, index_map: MapAttr) -> MapAttr:
        """Index into the source of a view of the view's element at `index_map`."""
        key = (through.map, through.axes, index_map)
        found = self.composed.get(key)
        if found is None:
            substitution = dict(zip(through.axes.names, index_map.data, strict=True))
            found = MapAttr.of(*(e.subs(substitution) for e in through.map.data))
            self.composed[key] = found
        return found

    def simplified(self, axes: AxesAttr, index_map: MapAttr) -> MapAttr:
        """Chains of reshapes would grow with their length otherwise."""
        ranges = Ranges.of_axes(axes.data, self.ranges)
        return MapAttr.of(*(simplify(e, ranges) for e in index_map.data))


def copy_of(view: ViewOp, elements: _Mapped, block: Block) -> SSAValue:
    """Replace a view by a nest that copies its elements from where they come."""
    load = LoadOp.of(elements.source, elements.map, location=view.location)
    body = Region(Block((load, YieldOp.create(operands=load.results))))
    copy = GenerateOp.of(_axes(view), body, (view.results[0].type,), location=view.location)
    remark("missed", "loop-eliminate-views", view, "not a strided view of its source; copied", map=str(_map(view)))
    block.insert_op_before(copy, view)
    view.results[0].replace_all_uses_with(copy.results[0])
    block.erase_op(view)
    return copy.results[0]


def _axes(view: Operation) -> AxesAttr:
    return cast(AxesAttr, view.properties["axes"])


def _map(view: Operation) -> MapAttr:
    return cast(MapAttr, view.properties["map"])


def _tensor(value: SSAValue) -> TensorType:
    return cast(TensorType, value.type)
