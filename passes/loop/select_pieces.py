"""`loop-select-pieces`: a cat that only nests read becomes a nest that selects the piece."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType, scalar_type
from ...dialects.loop import EmptyOp, GenerateOp, IndexOp, LoadOp, ScatterOp, YieldOp
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, MapAttr, SymAttr, symbol
from ...records import dataclass
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._cost import body_cost
from ._identities import constant, has_constants


@dataclass(frozen=True)
class SelectPieces(LoopPass):
    """Turn a chain of scatters that fills an empty tensor into generates, where that lets it fuse with its readers.

    level:         loop
    precondition:  `loop-eliminate-views`; `loop-inline` behind moves the pieces into the selecting nest, and that into
                   its readers
    guarantee:     the same values. A `loop.empty` that at most `max_pieces` scatters of static, shifted, whole axes
                   fill completely, each only read by the next and the last only by loads of nests, becomes one
                   generate for each piece and one that selects among them. A piece of one element along the dimension
                   need not have an axis for it, as those of a stack. Pieces with a reduction, an assert or
                   integer division stay scatters, because they cannot be computed under a mask.

        %d = loop.empty : !aten.tensor<8xf32>
        %a = loop.scatter set (i0 in 3) into %d[i0] unique { ... loop.yield %u } : !aten.tensor<8xf32>
        %b = loop.scatter set (i0 in 5) into %a[i0 + 3] unique { ... loop.yield %v } : !aten.tensor<8xf32>
    becomes
        %a = loop.generate (i0 in 3) { ... loop.yield %u } : !aten.tensor<3xf32>
        %b = loop.generate (i0 in 5) { ... loop.yield %v } : !aten.tensor<5xf32>
        %c = loop.generate (i0 in 8) {
          %m = i0 < 3  %u = loop.load %a[i0] if %m ...  %v = loop.load %b[i0 - 3] if not %m ...
          %s = arith.select %m, %u, %v : f32  loop.yield %s
        } : !aten.tensor<8xf32>
    """

    name = "loop-select-pieces"

    max_pieces: int = 4

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        for inner in list(block.ops):
            if type(inner) is EmptyOp and (chain := self.chain_from(inner)) and counter("loop-select-pieces"):
                remark("passed", "loop-select-pieces", chain[-1], "selects its piece", pieces=len(chain))
                _rewrite(block, inner, chain)

    def chain_from(self, empty: EmptyOp) -> list[ScatterOp]:
        """The scatters that fill an empty tensor, if they may become selects."""
        chain: list[ScatterOp] = []
        value: SSAValue = empty.out
        while type(user := value.get_user_of_unique_use()) is ScatterOp and value is user.dest:
            chain.append(user)
            value = user.out
        is_read = value.first_use is not None and all(
            type(use.operation) is LoadOp and use.index == 0 for use in value.uses
        )
        if not (2 <= len(chain) <= self.max_pieces) or not is_read or not has_constants([c.value for c in chain]):
            return []
        return chain if all(_is_maskable(c) for c in chain) and _covers(chain) else []


@dataclass(frozen=True)
class _Place:
    """Where a piece lies along one dimension: its axis, none for a piece of one element, and the elements it takes."""

    axis: str | None
    start: Expr
    size: Expr


def _places(scatter: ScatterOp) -> list[_Place] | None:
    """Where a piece lies in each dimension, if its axes are written in order, shifted."""
    axes = list(scatter.axes.data)
    found: list[_Place] = []
    for expr in scatter.map.data:
        if expr.free_symbols.isdisjoint(scatter.axes.names) and not (axes and axes[0][1] is ONE):
            found.append(_Place(None, expr, ONE))
            continue
        if not axes:
            return None
        name, size = axes.pop(0)
        start = expr.subs({name: 0}) if size is ONE else expr - symbol(name)
        if not start.free_symbols.isdisjoint(scatter.axes.names):
            return None
        found.append(_Place(name, start, size))
    return found if not axes else None


def _is_maskable(scatter: ScatterOp) -> bool:
    plain = scatter.kind.data == "set" and scatter.unique is not None and scatter.masked is None
    if not plain or scatter.in_place is not None or scatter.dynamic:
        return False
    cost = body_cost(scatter)
    return not (cost.has_assert or cost.has_reduce or cost.divides)


def _covers(chain: list[ScatterOp]) -> bool:
    """Whether the pieces lie side by side along one dimension and fill the tensor."""
    shape = _tensor(chain[0].out).shape
    pieces: list[list[_Place]] = []
    for scatter in chain:
        if (places := _places(scatter)) is None:
            return False
        pieces.append(places)
    partial = {k for places in pieces for k, place in enumerate(places) if place.size is not shape[k]}
    if len(partial) != 1:
        return False
    (along,) = partial
    ends = {places[along].start: places[along].start + places[along].size for places in pieces}
    position = ZERO
    for _ in chain:
        if position not in ends:
            return False
        position = ends[position]
    return len(ends) == len(chain) and position is shape[along]


def _rewrite(block: Block, empty: EmptyOp, chain: list[ScatterOp]) -> None:
    last = chain[-1]
    pieces = [_generate(block, scatter) for scatter in chain]
    select = _select(chain, pieces)
    block.insert_op_before(select, last)
    select.results[0].name_hint = last.out.name_hint
    last.out.replace_all_uses_with(select.results[0])
    for scatter in reversed(chain):
        block.erase_op(scatter)
    block.erase_op(empty)


def _generate(block: Block, scatter: ScatterOp) -> GenerateOp:
    """A piece as a tensor of its own."""
    result = _tensor(scatter.out)
    type_ = TensorType.get(scatter.axes.sizes, result.element, device=result.device)
    piece = GenerateOp.of(scatter.axes, scatter.detach_region(0), (type_,), location=scatter.location)
    block.insert_op_before(piece, scatter)
    return piece


def _select(chain: list[ScatterOp], pieces: list[GenerateOp]) -> GenerateOp:
    """The nest that reads each element from its piece."""
    result = _tensor(chain[-1].out)
    axes = AxesAttr.of(*((f"i{k}", size) for k, size in enumerate(result.shape)))
    ops: list[Operation] = [constant(0, scalar_type(result.element))]
    other = ops[0].results[0]
    value: SSAValue | None = None
    for scatter, piece in zip(chain, pieces, strict=True):
        places = _places(scatter)
        assert places is not None
        mask = _inside(places, axes, ops)
        placed = [(name, place) for name, place in zip(axes.names, places, strict=True) if place.axis is not None]
        index = MapAttr.of(*(symbol(name) - place.start for name, place in placed))
        load = LoadOp.of(piece.results[0], index, (), mask, other, location=scatter.location)
        ops.append(load)
        if value is None:
            value = load.value
        else:
            ops.append(arith.SelectOp(mask, load.value, value))
            value = ops[-1].results[0]
    ops.append(YieldOp.create(operands=(value,) if value is not None else ()))
    return GenerateOp.of(axes, Region(Block(ops)), (result,), location=chain[-1].location)


def _inside(places: list[_Place], axes: AxesAttr, ops: list[Operation]) -> SSAValue:
    """Ops that tell whether an index is in a piece; what always holds is left to `loop-simplify-indices`."""
    mask: SSAValue | None = None
    for name, place, whole in zip(axes.names, places, axes.sizes, strict=True):
        start, size = place.start, place.size
        if size is whole:
            continue
        index, low, high = (
            IndexOp.create(properties={"expr": SymAttr.of(e)}, result_types=(i64,))
            for e in (symbol(name), start, start + size)
        )
        above = arith.CmpiOp(index.results[0], low.results[0], "sge")
        below = arith.CmpiOp(index.results[0], high.results[0], "slt")
        both = arith.AndIOp(above.results[0], below.results[0])
        ops += [index, low, high, above, below, both]
        mask = both.results[0]
    assert mask is not None
    return mask


def _tensor(value: SSAValue) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type
