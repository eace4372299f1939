"""`loop-merge-updates`: the update of a piece of a piece of a tensor becomes one update of the tensor."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import LoadOp, ScatterOp, ViewOp
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, MapAttr, symbol
from ..analysis.memory import Mutations
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in, map_of


class MergeUpdates(LoopPass):
    """Let an update of a view of a tensor write into the tensor, where all of the view is written back anyway.

    level:         loop
    precondition:  `loop-eliminate-views`; no `loop.fusion` yet
    guarantee:     the same values. A scatter that only copies the result of another scatter back to where that one's
                   destination was read becomes that other scatter, with both index maps composed: what the inner one
                   does not touch would be written back unchanged. So `cache[layer, :, :, pos] = new` moves `new`, not
                   the layer.

        %l = loop.view %x[1, i0, i1] (i0 in 8, i1 in 4) : !aten.tensor<8x4xf32>
        %u = loop.scatter set (i0 in 1, i1 in 4) into %l[s0, i1] unique { ... loop.yield %v } : !aten.tensor<8x4xf32>
        %r = loop.scatter set (i0 in 8, i1 in 4) into %x[1, i0, i1] unique {
          %w = loop.load %u[i0, i1]
          loop.yield %w
        } : !aten.tensor<3x8x4xf32>
    becomes
        %r = loop.scatter set (i0 in 1, i1 in 4) into %x[1, s0, i1] unique {
          ...
          loop.yield %v
        } : !aten.tensor<3x8x4xf32>
    """

    name = "loop-merge-updates"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module; inner updates first."""
        if sum(type(inner) is ScatterOp for inner in block.ops) < 2:
            return
        mutations = Mutations(block)
        for outer in list(block.ops):
            if type(outer) is not ScatterOp or (inner := _copied_back(outer)) is None:
                continue
            place = _place(inner, outer)
            if place is None:
                remark("missed", "loop-merge-updates", outer, "the destination of the inner update is not this piece")
            elif _reads_the_same(inner, outer, mutations) and counter("loop-merge-updates"):
                remark("passed", "loop-merge-updates", outer, "one update of the whole tensor")
                _merge(block, inner, outer, place, mutations)


def _copied_back(outer: ScatterOp) -> ScatterOp | None:
    """The scatter whose whole result `outer` writes, element for element, and nothing else uses."""
    if outer.kind.data != "set" or outer.unique is None or outer.masked is not None or outer.dynamic:
        return None
    load = outer.value.owner
    if type(load) is not LoadOp or len(load.operands) != 1 or list(outer.body.block.ops)[:-1] != [load]:
        return None
    inner = load.operands[0].owner
    if type(inner) is not ScatterOp or inner.in_place is not None or not inner.out.has_one_use():
        return None
    own = tuple(ZERO if size is ONE else symbol(name) for name, size in outer.axes.data)
    whole = outer.axes.sizes == _shape(inner.out)
    return inner if whole and _same(map_of(load).data, own, outer.axes) else None


def _place(inner: ScatterOp, outer: ScatterOp) -> tuple[Expr, ...] | None:
    """Where the inner update lies in the outer destination: the outer map, if it maps the inner destination to it."""
    values = {name: expr for (name, _), expr in zip(outer.axes.data, inner.map.data, strict=True)}
    simple = all(expr.is_constant or expr.as_atom is not None for expr in outer.map.data)
    if inner.dynamic and not simple:
        return None  # indices that are loaded must stand alone
    piece, seen = _element(inner.dest, tuple(symbol(name) for name in outer.axes.names))
    whole, written = _element(outer.dest, outer.map.data)
    if piece is not whole or not _same(seen, written, outer.axes):
        return None
    return tuple(expr.subs(values) for expr in outer.map.data)


def _element(value: SSAValue, index: tuple[Expr, ...]) -> tuple[SSAValue, tuple[Expr, ...]]:
    """The value that is no view which an element of `value` is of, and its index there."""
    while isinstance(view := value.owner, ViewOp):
        at = dict(zip(view.axes.names, index, strict=True))
        value, index = view.source, tuple(expr.subs(at) for expr in view.map.data)
    return value, index


def _same(left: Iterable[Expr], right: Iterable[Expr], axes: AxesAttr) -> bool:
    """Whether two maps agree on a domain; an axis of one element is always 0."""
    zeros = {name: ZERO for name, size in axes.data if size is ONE}
    return [e.subs(zeros) for e in left] == [e.subs(zeros) for e in right]


def _shape(value: SSAValue) -> tuple[Expr, ...]:
    assert isinstance(value.type, TensorType)
    return value.type.shape


def _reads_the_same(inner: ScatterOp, outer: ScatterOp, mutations: Mutations) -> bool:
    """Whether nothing that the inner update reads, nor the destination, is written between the two."""
    read = [outer.dest, *(load.operands[0] for load in loads_in(inner))]
    return not mutations.moves_past_write(read, inner, outer)


def _merge(block: Block, inner: ScatterOp, outer: ScatterOp, place: tuple[Expr, ...], mutations: Mutations) -> None:
    merged = ScatterOp.create(
        operands=(outer.dest,),
        result_types=(outer.out.type,),
        properties={**inner.properties, "map": MapAttr.of(*place)},
        regions=[inner.detach_region(0)],
        location=inner.location,
    )
    merged.out.name_hint = outer.out.name_hint
    block.insert_op_before(merged, outer)
    mutations.replace(outer, merged)
    outer.out.replace_all_uses_with(merged.out)
    block.erase_op(outer)
    block.erase_op(inner)
