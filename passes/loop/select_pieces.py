"""`loop-select-pieces`: a cat that only nests read becomes a nest that selects the piece."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType, scalar_type
from ...dialects.loop import EmptyOp, GenerateOp, IndexOp, LoadOp, ScatterOp, YieldOp
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, MapAttr, SymAttr, symbol
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
                   generate for each piece and one that selects among them. Pieces with a reduction, an assert or
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


def offsets(scatter: ScatterOp) -> list[Expr] | None:
    """Where a piece starts in each dimension, if the k-th dimension is written at its k-th axis, shifted."""
    found: list[Expr] = []
    for expr, (name, size) in zip(scatter.map.data, scatter.axes.data, strict=False):
        start = expr.subs({name: 0}) if size is ONE else expr - symbol(name)
        if not start.free_symbols.isdisjoint(scatter.axes.names):
            return None
        found.append(start)
    return found if len(scatter.axes.data) == len(scatter.map.data) else None


def _is_maskable(scatter: ScatterOp) -> bool:
    plain = scatter.kind.data == "set" and scatter.unique is not None and scatter.masked is None
    if not plain or scatter.in_place is not None or scatter.dynamic:
        return False
    cost = body_cost(scatter)
    return not (cost.has_assert or cost.has_reduce or cost.divides)


def _covers(chain: list[ScatterOp]) -> bool:
    """Whether the pieces lie side by side along one dimension and fill the tensor."""
    shape = _tensor(chain[0].out).shape
    starts = [offsets(scatter) for scatter in chain]
    partial: set[int] = set()
    for scatter, start in zip(chain, starts, strict=True):
        if start is None:
            return False
        partial |= {k for k, size in enumerate(shape) if scatter.axes.sizes[k] is not size}
    if len(partial) != 1:
        return False
    (along,) = partial
    ends: dict[Expr, Expr] = {}
    for scatter, start in zip(chain, starts, strict=True):
        if start is not None:
            ends[start[along]] = start[along] + scatter.axes.sizes[along]
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
        starts = offsets(scatter)
        assert starts is not None
        mask = _inside(scatter, starts, axes, ops)
        index = MapAttr.of(*(symbol(name) - start for name, start in zip(axes.names, starts, strict=True)))
        load = LoadOp.of(piece.results[0], index, (), mask, other, location=scatter.location)
        ops.append(load)
        if value is None:
            value = load.value
        else:
            ops.append(arith.SelectOp(mask, load.value, value))
            value = ops[-1].results[0]
    ops.append(YieldOp.create(operands=(value,) if value is not None else ()))
    return GenerateOp.of(axes, Region(Block(ops)), (result,), location=chain[-1].location)


def _inside(scatter: ScatterOp, starts: list[Expr], axes: AxesAttr, ops: list[Operation]) -> SSAValue:
    """Ops that tell whether an index is in a piece; what always holds is left to `loop-simplify-indices`."""
    mask: SSAValue | None = None
    for name, start, size, whole in zip(axes.names, starts, scatter.axes.sizes, axes.sizes, strict=True):
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
