"""Kernels that work on rows, kernels that sum columns in parts of rows, and what both read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.scalar import number_of
from ...dialects.sym import ZERO, Expr, Ranges, ceildiv, simplify, symbol
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop, loops_in
from ..analysis.nests import element_bytes
from .simplify_block import is_pure
from .transforms import perfect_chain

#: what an access is named by: row and column stand for themselves, whatever the axes are called
Place = tuple[SSAValue, Expr]
_ROW, _COLUMN = symbol("row."), symbol("column.")
_SLT = 2


@dataclass(frozen=True)
class Columns:
    """A kernel of one nest that sums columns in parts of rows.

    part, column: the loops over the parts and over the columns, outermost first
    before:       what the body computes in front of the reduction
    reduce:       the sums over the rows of a part, row `rows * part + r` at r
    behind:       what becomes of the sums, stores included
    """

    function: kernel.FuncOp
    part: kernel.ForOp
    column: kernel.ForOp
    before: tuple[Operation, ...]
    reduce: kernel.ReduceOp
    behind: tuple[Operation, ...]

    @property
    def rows(self) -> Expr:
        """Rows of a part; the last parts may have fewer."""
        return self.reduce.hi.data

    @property
    def parts(self) -> Expr:
        """How many parts there are."""
        return self.part.hi.data

    @property
    def row(self) -> Expr:
        """The row that an iteration of the reduction reads."""
        return self.rows * symbol(self.part.axis.data) + symbol(self.reduce.axis.data)

    def values(self, total: Expr) -> list[SSAValue] | None:
        """What each sum adds up in the `total` rows that there are; None if more or less than that may count."""
        values = list(yielded(self.reduce.body))
        if self.rows * self.parts is total:
            return values
        known, rows, parts = total.as_int(), self.rows.as_int(), self.parts.as_int()
        exact = self.rows is ceildiv(total, self.parts) or (
            known is not None and rows is not None and parts is not None and rows * parts >= known
        )
        inside = [found for value in values if (found := self._inside(value, total)) is not None]
        return inside if exact and len(inside) == len(values) else None

    def _inside(self, value: SSAValue, total: Expr) -> SSAValue | None:
        """`x` of `select(row < total, x, 0)`; None for another value."""
        select = value.owner
        if not isinstance(select, arith.SelectOp) or not isinstance(select.cond.owner, arith.CmpiOp):
            return None
        compare = select.cond.owner
        inside = kernel.index_of(compare.lhs) is self.row and kernel.index_of(compare.rhs) is total
        if not inside or compare.predicate.value.data != _SLT:
            return None
        return select.lhs if number_of(select.rhs) == 0 else None


def columns_of(function: kernel.FuncOp) -> Columns | None:
    """What a kernel is as one that sums columns in parts; None where it is something else."""
    nest = _only_loop(function)
    chain = [] if nest is None else perfect_chain(nest)
    if len(chain) != 2 or any(loop.lo.data is not ZERO for loop in chain):
        return None
    part, column = chain
    body = list(column.body.block.ops)[:-1]
    reduces = [op for op in body if isinstance(op, Loop)]
    reduce = reduces[0] if len(reduces) == 1 else None
    if not isinstance(reduce, kernel.ReduceOp) or reduce.lo.data is not ZERO or any(loops_in(reduce.body.block)):
        return None
    before, behind = body[: body.index(reduce)], body[body.index(reduce) + 1 :]
    reads = all(is_pure(op) or isinstance(op, kernel.LoadOp) for op in (*before, *list(reduce.body.block.ops)[:-1]))
    writes = all(is_pure(op) or isinstance(op, kernel.LoadOp | kernel.StoreOp) for op in behind)
    sums = all(name.data == "sum" for name in reduce.combiners) and reduce.combine is None and not reduce.init
    floats = all(isinstance(result.type, AnyFloat) for result in reduce.results)
    if not (reads and writes and sums and floats) or _keeps_order(function):
        return None
    return Columns(function, part, column, tuple(before), reduce, tuple(behind))


def rows_of(function: kernel.FuncOp) -> kernel.ForOp | None:
    """The loop over the rows of a kernel that does nothing but reduce rows and work on them, a loop for each."""
    nest = _only_loop(function)
    if nest is None or nest.lo.data is not ZERO or _keeps_order(function):
        return None
    loops = [op for op in nest.body.block.ops if isinstance(op, Loop)]
    flat = all(isinstance(op, kernel.ForOp | kernel.ReduceOp) and not any(loops_in(op.body.block)) for op in loops)
    return nest if flat and any(isinstance(op, kernel.ReduceOp) for op in loops) else None


def _only_loop(function: kernel.FuncOp) -> kernel.ForOp | None:
    ops = list(function.body.block.ops)
    return ops[0] if len(ops) == 2 and isinstance(ops[0], kernel.ForOp) else None


def _keeps_order(function: kernel.FuncOp) -> bool:
    """Whether iterations of a kernel may meet, or report errors, or are mapped already."""
    if function.errors is not None or function.target is not None:
        return True
    stores = (op for op in function.walk() if isinstance(op, kernel.StoreOp))
    return any(op.atomic is not None or op.ordered is not None or op.kind.data != "set" for op in stores)


def shared_buffers(
    rows: kernel.ForOp, columns: Columns, same: Mapping[SSAValue, SSAValue], rows_first: bool
) -> list[SSAValue] | None:
    """Buffers of which a row at hand is what the sums of columns need too; None where they must not be joined.

    same:       buffers of the row kernel -> buffers of the other one that are the same memory
    rows_first: whether the rows are done before the columns are summed, so that these see what those wrote
    """
    written = {same[buffer] for buffer in written_buffers(rows.body.block) if buffer in same}
    if written & written_buffers(columns.part.body.block):
        return None
    own = dict(_places(rows, {rows.axis.data: _ROW}, kernel.LoadOp, same))
    stored = list(_places(rows, {rows.axis.data: _ROW}, kernel.StoreOp, same))
    here = {columns.reduce.axis.data: _ROW - columns.rows * symbol(columns.part.axis.data)}
    here[columns.column.axis.data] = _COLUMN
    within = Ranges.of_axes([("row.", rows.hi.data)])
    found: dict[SSAValue, None] = {}
    for load in (op for op in columns.part.walk() if isinstance(op, kernel.LoadOp)):
        place = load.buffer, simplify(load.map.data[0].subs(here), within)
        if load.buffer in written:
            alike = all(at is place[1] for (buffer, at), _ in stored if buffer is load.buffer)
            if not rows_first or load.dynamic or not alike or load.parent is not columns.reduce.body.block:
                return None
            found[load.buffer] = None
        elif place in own and not load.dynamic and _COLUMN.free_symbols <= place[1].free_symbols:
            found[load.buffer] = None
    return list(found)


def _places(
    rows: kernel.ForOp,
    names: dict[str, Expr],
    kind: type[kernel.LoadOp | kernel.StoreOp],
    same: Mapping[SSAValue, SSAValue],
) -> Iterator[tuple[Place, Operation]]:
    for loop in rows.body.block.ops:
        if isinstance(loop, kernel.ForOp | kernel.ReduceOp):
            for op in loop.body.block.ops:
                if isinstance(op, kind) and op.buffer in same:
                    index = op.map.data[0].subs({**names, loop.axis.data: _COLUMN})
                    yield (same[op.buffer], index if not op.dynamic else ZERO), op
        elif isinstance(loop, kind) and loop.buffer in same:  # an element of the row kernel's own, outside of a row
            yield (same[loop.buffer], loop.map.data[0].subs(names)), loop


def bytes_of_row(buffers: list[SSAValue], columns: Columns, length: int) -> int:
    """Bytes that the sums of columns need not read again, a row."""
    return length * sum(element_bytes(buffer.type) for buffer in buffers if isinstance(buffer, BlockArgument))
